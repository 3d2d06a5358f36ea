"""The array namespace of emulated devices: the part of ``cupy`` that needs no compiler.

A program that gets its arrays from ``xp = tcuda.xp`` runs with CuPy on a GPU and with this module without one. It has
nothing that CuPy has not, so that what runs here runs there. Functions take arrays of the current device and scalars;
only those that make arrays take lists and NumPy's arrays.

Missing of what CuPy has: kernels written in C++ (``ElementwiseKernel``, ``RawKernel``, ...), functions that take a
function of Python's (``vectorize``, ``piecewise``, ``apply_along_axis``), ``flatiter``, ``broadcast`` and ``poly1d``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tcuda.emulation import catalogue, creation, fft, host, kernel, linalg, random
from tcuda.emulation.functions import FUNCTIONS
from tcuda.emulation.ndarray import ndarray
from tcuda.emulation.strided import Strided
from tcuda.emulation.ufunc import ufunc


class _Grid:
    """What makes arrays of the slices in its brackets, as NumPy's object of that name does."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid
        self.__doc__ = grid.__doc__

    def __getitem__(self, key: Any) -> Any:
        return kernel.call(self._grid.__getitem__, (key,))


def get_array_module(*args: Any) -> Any:
    """Return this module if there is an array of a device among ``args``, else ``numpy``."""
    return sys.modules[__name__] if any(isinstance(arg, Strided) for arg in args) else np


def _table() -> dict[str, Any]:
    return {
        **{name: getattr(np, name) for name in catalogue.PLAIN if hasattr(np, name)},
        **{name: _Grid(getattr(np, name)) for name in catalogue.GRIDS},
        **{name: getattr(creation, name) for name in catalogue.CREATION},
        **{name: getattr(host, name) for name in catalogue.HOST},
        **FUNCTIONS,
        "fft": fft,
        "linalg": linalg,
        "ndarray": ndarray,
        "random": random,
        "ufunc": ufunc,
    }


_TABLE = _table()


def __getattr__(name: str) -> Any:
    try:
        return _TABLE[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*_TABLE, "get_array_module"])
