"""Layouts: where the elements of an array lie, as a kernel sees them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.devices.strided import Strided

_SHORT = 1 << 31


class Layout(NamedTuple):
    """An array of the device with the shape and strides that the kernel uses.

    Attributes:
        array: The array.
        shape: The lengths of the axes.
        strides: The bytes from one element to the next along each axis.
    """

    array: Strided
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        expected = self.array.itemsize
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and stride != expected:
                return False
            expected *= length
        return True

    @property
    def short_index(self) -> bool:
        """Whether 32 bits hold the place of each element."""
        return math.prod(self.shape) * self.array.itemsize <= _SHORT

    def transposed(self, axes: Sequence[int]) -> Layout:
        """Return this layout with the axes in the order of ``axes``."""
        return Layout(self.array, tuple(self.shape[axis] for axis in axes), tuple(self.strides[axis] for axis in axes))


def layout_of(array: Strided) -> Layout:
    """Return the layout of ``array``."""
    return Layout(array, array.shape, array.strides)


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which all ``shapes`` broadcast.

    Raises:
        ValueError: The shapes do not fit together.
    """
    if all(shape == shapes[0] for shape in shapes[1:]):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " ".join(map(str, shapes))
        raise ValueError(f"operands could not be broadcast together with shapes {listed}") from None


def broadcast(array: Strided, shape: tuple[int, ...]) -> Layout:
    """Return the layout of ``array`` when broadcast to ``shape``."""
    if array.shape == shape:
        return layout_of(array)
    missing = len(shape) - array.ndim
    strides = [0] * missing
    for axis, (length, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        strides.append(stride if length == shape[missing + axis] else 0)
    return Layout(array, shape, tuple(strides))


def reduce_axes(layouts: list[Any], raw: Sequence[bool], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Join the axes that all arrays step through without gaps, so that the kernel computes fewer indices.

    Args:
        layouts: The operands, which are layouts or scalars. Layouts of ``shape`` are replaced in the list.
        raw: Whether each operand is raw. A raw operand keeps its axes.
        shape: The shape of the loop.

    Returns:
        The new shape of the loop.
    """
    places = [place for place, value in enumerate(layouts) if isinstance(value, Layout) and not raw[place]]
    if len(shape) <= 1 or not places:
        return shape
    joined: list[int] = []
    ends: list[int] = []
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        if ends and all(layouts[place].strides[axis] * length == layouts[place].strides[ends[-1]] for place in places):
            joined[-1] *= length
            ends[-1] = axis
        else:
            joined.append(length)
            ends.append(axis)
    if not joined:
        joined, ends = [1], [len(shape) - 1]
    new = tuple(joined)
    for place in places:
        old = layouts[place]
        layouts[place] = Layout(old.array, new, tuple(old.strides[axis] for axis in ends))
    return new
