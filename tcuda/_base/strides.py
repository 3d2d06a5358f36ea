"""The memory of an array, by its strides: the bytes from one element to the next along each axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def byte_bounds(address: int, itemsize: int, shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Return the address of the first byte of all elements, and the address behind the last one.

    Args:
        address: The address of the element whose indices are all 0.
        itemsize: The bytes of an element.
        shape: The lengths of the axes.
        strides: The strides of the axes.
    """
    if 0 in shape:
        return address, address
    begin = end = address
    for length, stride in zip(shape, strides, strict=True):
        if stride < 0:
            begin += (length - 1) * stride
        else:
            end += (length - 1) * stride
    return begin, end + itemsize


def packed_strides(itemsize: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array in C order without gaps."""
    strides: list[int] = []
    for length in reversed(shape):
        strides.append(itemsize)
        itemsize *= length
    return tuple(reversed(strides))
