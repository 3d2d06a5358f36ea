"""Names of the package that are looked up when a program first asks for them, because they import many modules."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tcuda._backend import array_module
from tcuda._base.absent import about
from tcuda._process.lazy import is_initialized
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime


_MODULES = ("comm", "emulation", "nccl", "sanitizer")


def __getattr__(name: str) -> Any:
    # The package keeps this function for good, although Python then takes 20 ns more for each look-up in the package.
    # Without the function, a name that only torch has would raise an error without the reason.
    if name == "xp":
        arrays = array_module(runtime())
        if is_initialized():  # before that, the program may still choose another runtime
            _bind_xp(arrays)
        return arrays
    if name in _MODULES:
        return importlib.import_module(f"tcuda.{name}")
    raise AttributeError(f"module 'tcuda' has no attribute {name!r}{about(name)}", name=name, obj=sys.modules["tcuda"])


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules["tcuda"]), *_MODULES, "xp"})


def bind_xp(cuda: Runtime, backend: Backend) -> None:
    """Make ``xp`` a plain name of the package if the array library is imported: a step of initialisation."""
    if backend.array_module in sys.modules:
        _bind_xp(array_module(cuda))


def _bind_xp(arrays: object) -> None:
    vars(sys.modules["tcuda"])["xp"] = arrays
