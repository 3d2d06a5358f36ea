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
