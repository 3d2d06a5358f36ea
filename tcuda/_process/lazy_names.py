"""Names of the package that are looked up when a program first asks for them, because they import many modules."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tcuda._backend import array_module
from tcuda._base.absent import about
from tcuda._base.public_names import is_listed
from tcuda._base.wings import lack_of, lacks
from tcuda._process.lazy import is_initialized
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime


def lazy_names(package: str, modules: Sequence[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of the package, which knows ``xp`` and some of its modules.

    Args:
        package: The name of the package.
        modules: The modules that are imported when a program asks for them.
    """

    def look_up(name: str) -> Any:
        # The package keeps this function for good, although Python then takes 20 ns more for each look-up in the
        # package. Without the function, a name that only torch has would raise an error without the reason.
        if name == "xp":
            arrays = array_module(runtime())
            if is_initialized():  # before that, the program may still choose another runtime
                _bind_xp(arrays)
            return arrays
        if lacks(name):
            raise AttributeError(lack_of(name), name=name, obj=sys.modules[package])
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}{about(name)}", name=name, obj=sys.modules[package]
        )

    def names() -> list[str]:
        # An editor completes these names. Names that the package imports for its own use are not among them.
        found = vars(sys.modules[package])
        shown = {name for name, value in found.items() if is_listed(name, value) or _is_room(value)}
        present = {name for name in modules if not lacks(name)}
        return sorted({*shown, *found["__all__"], *present, "xp"})

    def _is_room(value: object) -> bool:
        return getattr(value, "__name__", "").startswith(f"{package}.") and hasattr(value, "__spec__")

    return look_up, names


def bind_xp(cuda: Runtime, backend: Backend) -> None:
    """Make ``xp`` a plain name of the package if the array library is imported: a step of initialisation."""
    if backend.array_module in sys.modules:
        _bind_xp(array_module(cuda))


def _bind_xp(arrays: object) -> None:
    vars(sys.modules["tcuda"])["xp"] = arrays
