"""The array namespace of emulated devices: the part of ``cupy`` that needs no compiler.

A program that gets its arrays from ``xp = tcuda.xp`` runs with CuPy on a GPU and with this module without one. The
module has only names that CuPy has too, so that a program that runs here runs there. Functions take arrays of the
current device and scalars; only functions that make arrays take lists and NumPy's arrays.

Missing are kernels written in C++ (``ElementwiseKernel``, ``RawKernel``, ...), functions that take a function of
Python's (``vectorize``, ``piecewise``, ``apply_along_axis``), ``flatiter``, ``broadcast`` and ``poly1d``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation import catalogue, creation, fft, host, linalg, random
from tcuda.emulation._ndarray import ndarray
from tcuda.emulation.functions import FUNCTIONS
from tcuda.emulation.grids import Grid, Joined
from tcuda.emulation.strided import Strided
from tcuda.emulation.ufunc import ufunc

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def get_array_module(*args: Any) -> Any:
    """Return this module if there is an array of a device among ``args``, else ``numpy``."""
    for arg in args:
        if isinstance(arg, Strided):
            return sys.modules[__name__]
    return np


_TABLE: dict[str, Any] = {
    **{name: getattr(np, name) for name in catalogue.PLAIN if hasattr(np, name)},
    **{name: Grid(name) for name in catalogue.GRIDS},
    **{name: Joined(name) for name in catalogue.JOINING},
    **{name: getattr(creation, name) for name in catalogue.CREATION},
    **{name: getattr(host, name) for name in catalogue.HOST},
    **FUNCTIONS,
    "fft": fft,
    "linalg": linalg,
    "ndarray": ndarray,
    "random": random,
    "ufunc": ufunc,
}


def __dir__() -> list[str]:
    return sorted([*_TABLE, "get_array_module"])


for _name in catalogue.CREATION:
    _TABLE[_name].__module__ = __name__  # so that the functions are pickled by their public names

# The last statement, because some of the names hide builtins from the rest of the module. The names stand in the module
# itself, where Python finds them at once.
globals().update(_TABLE)
