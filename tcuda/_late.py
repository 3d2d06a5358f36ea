"""Names of the package that are looked up when they are first asked for, because they import arrays."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tcuda._runtime import runtime


def __getattr__(name: str) -> Any:
    if name == "xp":
        return importlib.import_module(runtime().array_module)
    if name == "emulation":
        return importlib.import_module("tcuda.emulation")
    raise AttributeError(f"module 'tcuda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules["tcuda"]), "emulation", "xp"})


def settle() -> None:
    """Put the late names in their places, once the runtime is settled and has imported arrays in any case.

    Python looks up every name of a module that has ``__getattr__`` the long way, which takes 20 ns more.
    """
    package = sys.modules["tcuda"]
    for name in ("xp", "emulation"):
        setattr(package, name, __getattr__(name))
    vars(package).pop("__getattr__", None)
