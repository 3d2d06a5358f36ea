"""SciPy on arrays of emulated devices: the modules of ``cupyx.scipy`` that SciPy computes.

SciPy is an optional package. Without SciPy, this module can be imported and its modules cannot.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tcuda.emulation.strided import Strided

_MODULES = ("fft", "fftpack", "linalg", "ndimage", "signal", "special", "stats")


def get_array_module(*args: Any) -> Any:
    """Return this module if an array of a device is among ``args``, and ``scipy`` otherwise."""
    if any(isinstance(arg, Strided) for arg in args):
        return sys.modules[__name__]
    return importlib.import_module("scipy")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_MODULES, "get_array_module"])
