"""Names of the package that are looked up when a program first asks for them, because they import the array library."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tcuda._backend import array_module
from tcuda._process.lazy import is_initialized
from tcuda._runtime import runtime

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime


def __getattr__(name: str) -> Any:
    if name == "xp":
        arrays = array_module(runtime())
        if is_initialized():  # before that, the program may still choose another runtime
            _settle(arrays)
        return arrays
    if name == "emulation":
        return importlib.import_module("tcuda.emulation")
    raise AttributeError(f"module 'tcuda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules["tcuda"]), "emulation", "xp"})


def settle(cuda: Runtime, backend: Backend) -> None:
    """Make the late names plain names of the package if the array library is imported: a step of initialisation."""
    if backend.array_module in sys.modules:
        _settle(array_module(cuda))


def _settle(arrays: object) -> None:
    # Python takes 20 ns more for every look-up in a module that has __getattr__.
    package = sys.modules["tcuda"]
    for name, value in (("xp", arrays), ("emulation", importlib.import_module("tcuda.emulation"))):
        setattr(package, name, value)
    vars(package).pop("__getattr__", None)
