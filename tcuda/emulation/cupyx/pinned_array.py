"""NumPy arrays in page-locked memory (``cupyx.empty_pinned`` and others)."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cuda.pinned_memory import alloc_pinned_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Shape = int | Sequence[int]


def empty_pinned(shape: Shape, dtype: npt.DTypeLike = float, order: str = "C") -> npt.NDArray[Any]:
    """Return a new NumPy array in page-locked memory, with uninitialised elements."""
    return _strided(_lengths(shape), np.dtype(dtype), None, order)


def zeros_pinned(shape: Shape, dtype: npt.DTypeLike = float, order: str = "C") -> npt.NDArray[Any]:
    """Return a new NumPy array of zeros in page-locked memory."""
    return _cleared(empty_pinned(shape, dtype, order))


def empty_like_pinned(
    a: Any, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Shape | None = None
) -> npt.NDArray[Any]:
    """Return a new NumPy array in page-locked memory, with the shape, type and layout of ``a``.

    Args:
        a: A NumPy array or an array of a device.
        dtype: The type of the elements; that of ``a`` if None.
        order: The layout: ``"C"``, ``"F"``, ``"A"`` or ``"K"``.
        subok: Must be None.
        shape: The shape; that of ``a`` if None.

    Raises:
        TypeError: ``subok`` is not None.
    """
    if subok is not None:
        raise TypeError("subok is not supported yet")
    kind = np.dtype(a.dtype if dtype is None else dtype)
    host = a if isinstance(a, np.ndarray) else a._host
    # NumPy has the rules for the layout. The model costs nothing, because no code writes to its memory.
    model = np.empty_like(host, kind, order, shape=None if shape is None else _lengths(shape))  # type: ignore[call-overload]
    return _strided(model.shape, kind, model.strides)


def zeros_like_pinned(
    a: Any, dtype: npt.DTypeLike | None = None, order: str = "K", subok: None = None, shape: Shape | None = None
) -> npt.NDArray[Any]:
    """Return a new NumPy array of zeros in page-locked memory; the arguments are those of :func:`empty_like_pinned`."""
    return _cleared(empty_like_pinned(a, dtype, order, subok, shape))


def _lengths(shape: Shape) -> tuple[int, ...]:
    return tuple(map(operator.index, shape)) if isinstance(shape, (tuple, list)) else (operator.index(shape),)  # type: ignore[arg-type]


def _strided(
    shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None, order: str = "C"
) -> npt.NDArray[Any]:
    memory: Any = alloc_pinned_memory(math.prod(shape) * dtype.itemsize)
    made: npt.NDArray[Any] = np.ndarray(shape, dtype, memory, 0, strides, order)  # type: ignore[arg-type]
    return made


def _cleared(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array[...] = 0
    return array
