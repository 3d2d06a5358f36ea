"""The functions of ``cupy._core.internal`` that libraries call: shapes, axes and slices."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def prod(args: Iterable[int]) -> int:
    """Return the product of integers."""
    return math.prod(args)


def prod_sequence(args: Iterable[int]) -> int:
    """Return the product of integers."""
    return math.prod(args)


def clp2(x: int) -> int:
    """Return the smallest power of two that is not smaller than ``x``; 0 for 0."""
    return 1 << (x - 1).bit_length() if x > 0 else 0


def get_size(size: Any) -> tuple[Any, ...]:
    """Return a shape as a tuple.

    Raises:
        TypeError: The shape is None, or a boolean.
    """
    if size is None:
        raise TypeError("Use () not None as shape arguments")
    try:
        lengths = tuple(size)
    except TypeError:
        lengths = (size,)
    if any(isinstance(length, (bool, np.bool_)) for length in lengths):
        raise TypeError(f"A shape has integers, and no booleans; got {size!r}.")
    return lengths


def infer_unknown_dimension(shape: Sequence[int], size: int) -> list[int]:
    """Return a shape with the length in place of a negative number.

    Args:
        shape: The shape, in which one length may be negative.
        size: The number of elements.

    Raises:
        ValueError: Several lengths are negative, or no length gives the number of elements.
    """
    unknown = [axis for axis, length in enumerate(shape) if length < 0]
    known = math.prod(length for length in shape if length >= 0)
    found = list(shape)
    if not unknown and known == size:
        return found
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    if not unknown or known == 0 or size % known:
        raise ValueError(f"cannot reshape array of size {size} into shape {tuple(shape)}")
    found[unknown[0]] = size // known
    return found


def complete_slice(slc: slice, dim: int) -> slice:
    """Return a slice of an axis as three numbers, of which none is negative for an axis that runs forward.

    Raises:
        TypeError: A part of the slice is no integer.
        ValueError: The step is zero.
    """
    for part in ("step", "start", "stop"):
        value = getattr(slc, part)
        if value is not None and not hasattr(value, "__index__"):
            raise TypeError(f"slice.{part} must be int or None or have __index__ method: {slc}")
    if slc.step is not None and operator.index(slc.step) == 0:
        raise ValueError("Slice step must be nonzero.")
    start, stop, step = slc.indices(dim)
    return slice(start, max(start, stop) if step > 0 else min(start, stop), step)


def _normalize_axis_index(axis: int, ndim: int) -> int:
    """Return the number of an axis without a sign.

    Raises:
        AxisError: There is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _normalize_axis_indices(axes: Any, ndim: int, sort_axes: bool = True) -> tuple[int, ...]:
    """Return the numbers of axes without signs; all axes for None.

    Raises:
        AxisError: There is no such axis.
        ValueError: An axis is there twice.
    """
    if axes is None:
        return tuple(range(ndim))
    given = axes if isinstance(axes, tuple) else (axes,)
    found = tuple(_normalize_axis_index(axis, ndim) for axis in given)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found)) if sort_axes else found


def _broadcast_shapes(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which arrays of some shapes broadcast.

    Raises:
        ValueError: There is no such shape.
    """
    return np.broadcast_shapes(*shapes)


__all__ = [
    "_broadcast_shapes",
    "_normalize_axis_index",
    "_normalize_axis_indices",
    "clp2",
    "complete_slice",
    "get_size",
    "infer_unknown_dimension",
    "prod",
    "prod_sequence",
]
