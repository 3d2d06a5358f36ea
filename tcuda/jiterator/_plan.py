"""The plan of a call: the shape of the outputs, their order of axes, and the steps through each input."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from tcuda.jiterator import _source

if TYPE_CHECKING:
    from collections.abc import Sequence

    Lengths = tuple[int, ...]

_HALF_RANGE = 1 << 31
"""Sizes and offsets below this number fit in 32 bits."""


class Axis(NamedTuple):
    """An axis of the loop, after axes were merged.

    Attributes:
        length: The number of steps.
        strides: The bytes of a step, for each input.
    """

    length: int
    strides: Lengths


class Plan(NamedTuple):
    """A plan by which one kernel computes all outputs.

    Attributes:
        kernel: The name of the kernel.
        size: The number of elements of an output.
        shape: The shape of the outputs.
        made: The shape in which an output is made, with its elements side by side.
        axes: The axes of the made output in the order of ``shape``; None if the orders are the same.
        loop: The axes of the loop; axis 0 varies fastest.
    """

    kernel: str
    size: int
    shape: Lengths
    made: Lengths
    axes: Lengths | None
    loop: tuple[Axis, ...]


@functools.lru_cache(maxsize=512)
def plan_of(shapes: tuple[Lengths, ...], strides: tuple[Lengths, ...], itemsizes: Lengths) -> Plan:
    """Return the plan for inputs with these shapes, strides and sizes of elements.

    Raises:
        RuntimeError: The shapes cannot be broadcast to one shape, or the loop has too many axes.
    """
    shape = _broadcast(shapes)
    steps = [_aligned(own, step, shape) for own, step in zip(shapes, strides, strict=True)]
    order = _order(shape, steps)
    made = tuple(shape[axis] for axis in reversed(order))
    size = 1
    for length in shape:
        size *= length
    loop = _merged([Axis(shape[axis], tuple(step[axis] for step in steps)) for axis in order])
    transposed = tuple(reversed(order)) != tuple(range(len(shape)))
    axes = tuple(len(order) - 1 - order.index(axis) for axis in range(len(shape))) if transposed else None
    return Plan(_kernel(size, loop, itemsizes), size, shape, made, axes, loop)


def _broadcast(shapes: Sequence[Lengths]) -> Lengths:
    """Return the shape to which all shapes are broadcast."""
    result: list[int] = []
    for shape in shapes:
        result = [1] * (len(shape) - len(result)) + result
        for axis in range(-len(shape), 0):
            length = shape[axis]
            if result[axis] == 1:
                result[axis] = length
            elif length not in (1, result[axis]):
                text = ", ".join(map(str, shapes))
                raise RuntimeError(
                    f"The shapes of the inputs cannot be broadcast to one shape: {text}. Lengths {result[axis]} and "
                    f"{length} of axis {axis} differ, and neither is 1."
                )
    return tuple(result)


def _aligned(shape: Lengths, strides: Lengths, broadcast: Lengths) -> Lengths:
    """Return the strides along the axes of ``broadcast``; 0 for an axis along which the input has one element."""
    missing = len(broadcast) - len(shape)
    own = (0 if length == 1 and broadcast[missing + axis] != 1 else strides[axis] for axis, length in enumerate(shape))
    return (0,) * missing + tuple(own)


def _order(shape: Lengths, steps: Sequence[Lengths]) -> list[int]:
    """Return the axes from the smallest step to the largest; the last axis comes first if steps are equal.

    As in torch, this order is the order of the outputs in memory. The first input with different steps along two axes
    decides the order of these axes. An input that is broadcast along one of them decides nothing.
    """
    order = list(range(len(shape) - 1, -1, -1))
    for place in range(1, len(order)):
        moving = place
        for before in range(place - 1, -1, -1):
            comparison = _compared(shape, steps, order[before], order[moving])
            if comparison > 0:
                order[before], order[moving] = order[moving], order[before]
                moving = before
            elif comparison < 0:
                break
    return order


def _compared(shape: Lengths, steps: Sequence[Lengths], first: int, second: int) -> int:
    for step in steps:
        one, other = abs(step[first]), abs(step[second])
        if one == 0 or other == 0:
            continue
        if one != other:
            return one - other
        if shape[first] > shape[second]:
            return 1
    return 0


def _merged(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return ``axes`` without axes of length 1, and with neighbours merged where the steps of all inputs allow it."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.length == 1:
            continue
        last = merged[-1] if merged else None
        if last and all(step == last.length * inner for step, inner in zip(axis.strides, last.strides, strict=True)):
            merged[-1] = Axis(last.length * axis.length, last.strides)
        else:
            merged.append(axis)
    return tuple(merged)


def _kernel(size: int, loop: Sequence[Axis], itemsizes: Lengths) -> str:
    """Return the name of the kernel for ``loop``."""
    if size <= 1 or (len(loop) == 1 and loop[0].strides == itemsizes):
        return _source.CONTIGUOUS
    if len(loop) > _source.WIDE_AXES:
        raise RuntimeError(
            f"The loop over the inputs has {len(loop)} axes, and at most {_source.WIDE_AXES} are allowed. "
            "Make the inputs contiguous first."
        )
    reach = max(sum(abs(axis.strides[place]) * (axis.length - 1) for axis in loop) for place in range(len(itemsizes)))
    narrow = max(size, reach) < _HALF_RANGE and len(loop) <= _source.NARROW_AXES
    return _source.STRIDED if narrow else _source.WIDE
