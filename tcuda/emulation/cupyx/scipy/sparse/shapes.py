"""Shapes and axes of sparse matrices, checked as CuPy checks them."""

from __future__ import annotations

import math
import operator
from typing import Any


def is_shape(value: Any, allowed: tuple[int, ...] = (2,)) -> bool:
    """Return whether ``value`` is a tuple of as many integers as ``allowed`` says."""
    if not isinstance(value, tuple) or len(value) not in allowed:
        return False
    return all(_is_integer(item) for item in value)


def _is_integer(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        if getattr(value, "ndim", 0):
            return False
        try:
            return bool(int(value) == value)
        except (TypeError, ValueError):
            return False
    return True


def checked_shape(shape: Any, allowed: tuple[int, ...] = (2,)) -> tuple[int, ...]:
    """Return ``shape`` as a tuple of integers.

    Raises:
        ValueError: ``shape`` is no shape of so many axes, or has a negative length.
    """
    lengths = tuple(shape) if hasattr(shape, "__iter__") else ()
    if not is_shape(lengths, allowed):
        wanted = "a 2-tuple of int" if allowed == (2,) else f"a tuple of int with length in {allowed}"
        raise ValueError(f"invalid shape (must be {wanted})")
    if any(length < 0 for length in lengths):
        raise ValueError("'shape' elements cannot be negative")
    return tuple(map(int, lengths))


def reshaped(shape: tuple[Any, ...], current: tuple[int, ...], allowed: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that the arguments of ``reshape`` mean, with a number in the place of -1.

    Raises:
        TypeError: There is no shape.
        ValueError: The shape has another number of elements, or a number of axes that is not allowed.
    """
    if not shape:
        raise TypeError("function missing 1 required positional argument: 'shape'")
    given = shape[0] if len(shape) == 1 and hasattr(shape[0], "__iter__") else shape
    lengths = [operator.index(length) for length in given]
    size, unknown = math.prod(current), [place for place, length in enumerate(lengths) if length < 0]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = math.prod(length for length in lengths if length >= 0)
    if unknown and known and size % known == 0:
        lengths[unknown[0]] = size // known
    elif unknown or known != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {tuple(given)}")
    if len(lengths) not in allowed:
        raise ValueError(f"shape must have length in {allowed}. Got new_shape={tuple(lengths)}")
    return tuple(lengths)


def collapsed_axis(axis: Any, ndim: int) -> int | None:
    """Return the axis that ``axis`` means, None for all axes.

    Raises:
        TypeError: ``axis`` is no integer.
        ValueError: There is no such axis.
    """
    if isinstance(axis, tuple):
        places = {operator.index(item) % ndim if -ndim <= operator.index(item) < ndim else None for item in axis}
        if None in places or len(places) != len(axis) or not places:
            raise ValueError(f"axis {axis} is out of range for an array with {ndim} axes")
        axis = None if len(places) == ndim else places.pop()
    return checked_axis(axis, ndim)


def checked_axis(axis: Any, ndim: int) -> int | None:
    """Return ``axis``, which may be negative, or None.

    Raises:
        TypeError: ``axis`` is no integer.
        ValueError: There is no such axis.
    """
    if axis is None:
        return None
    if isinstance(axis, tuple):
        raise TypeError(
            "Tuples are not accepted for the 'axis' parameter. Please pass in one of the following: {-2, -1, 0, 1, "
            "None}."
        )
    if not hasattr(axis, "__index__"):
        raise TypeError(f"axis must be an integer, not {type(axis).__name__}")
    if not -ndim <= axis < ndim:
        raise ValueError("axis out of range")
    return int(axis) if ndim > 1 else None
