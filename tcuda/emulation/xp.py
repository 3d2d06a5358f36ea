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
    """An object that makes arrays of the slices in its brackets, as NumPy's object of that name does.

    Args:
        name: The name of the object.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._grid = getattr(np, name)
        self.__doc__ = self._grid.__doc__
        self.__module__ = __name__

    def __getitem__(self, key: Any) -> Any:
        items = [self._item(item) for item in (key if isinstance(key, tuple) else (key,))]
        return kernel.call(self._grid.__getitem__, (tuple(items) if isinstance(key, tuple) else items[0],))

    def __reduce__(self) -> str:
        return self._name

    def _item(self, item: Any) -> slice:
        if not isinstance(item, slice):
            raise AttributeError(f"{self._name}[...] takes slices, such as {self._name}[0:3]; got {item!r}.")
        ends = [end.item() if isinstance(end, ndarray) else end for end in (item.start, item.stop, item.step)]
        if any(isinstance(end, complex) for end in ends[:2]):
            raise TypeError(f"{self._name}[...] goes from one real number to another; got {ends[0]} to {ends[1]}.")
        return slice(*ends)


class _Joined(_Grid):
    """An object that makes one array of the arrays and numbers in its brackets."""

    def _item(self, item: Any) -> Any:
        if isinstance(item, (slice, str)):
            raise NotImplementedError(
                f"{self._name}[...] joins arrays and numbers, and takes no slices and no texts, unlike NumPy's; got "
                f"{item!r}. Make an array of a slice with arange()."
            )
        return creation.asarray(item) if isinstance(item, (list, tuple, np.ndarray)) else item


def get_array_module(*args: Any) -> Any:
    """Return this module if there is an array of a device among ``args``, else ``numpy``."""
    return sys.modules[__name__] if any(isinstance(arg, Strided) for arg in args) else np


def _table() -> dict[str, Any]:
    return {
        **{name: getattr(np, name) for name in catalogue.PLAIN if hasattr(np, name)},
        **{name: _Grid(name) for name in catalogue.GRIDS},
        **{name: _Joined(name) for name in catalogue.JOINING},
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
