"""The elements of a view that lie in a range of memory."""

from __future__ import annotations

from typing import NamedTuple

from tcuda._base.strides import byte_bounds


class Region(NamedTuple):
    """The memory of a view.

    Attributes:
        address: The address of the first element.
        itemsize: The size of an element, in bytes.
        shape: The number of elements in each dimension.
        strides: The distance of neighbouring elements in each dimension, in bytes.
    """

    address: int
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size


class Elements(NamedTuple):
    """The first and the last element of a view in a range of memory, counted in C order.

    Attributes:
        first: The number of the first element.
        last: The number of the last element.
    """

    first: int
    last: int


def elements(region: Region, overlap: tuple[int, int]) -> Elements | None:
    """Return the elements of a view in which a range of memory begins and ends.

    Args:
        region: The view.
        overlap: The address of the first byte and the number of bytes. The first and the last byte belong to elements
            of the view.

    Returns:
        The elements; None if elements of the view overlap each other, so that a byte belongs to several elements.
    """
    address, size = overlap
    ends = [_number(region, address), _number(region, address + size - 1)]
    if None in ends:
        return None
    first, last = sorted(number for number in ends if number is not None)
    return Elements(first, last)


def _number(region: Region, address: int) -> int | None:
    """Return the number of the element that has the byte at ``address``; None if no single element is found."""
    place = _place(region, address)
    if place is None:
        return None
    number = 0
    for index, length in zip(place, region.shape, strict=True):
        number = number * length + index
    return number


def _place(region: Region, address: int) -> list[int] | None:
    """Return the indices of the element that has the byte at ``address``."""
    rest = address - byte_bounds(*region)[0]
    place = [0] * len(region.shape)
    # Each index is found by a division, beginning with the longest stride: a view without overlapping elements has
    # each dimension within one step of the next longer stride.
    for axis in sorted(range(len(region.shape)), key=lambda axis: -abs(region.strides[axis])):
        stride, length = region.strides[axis], region.shape[axis]
        if stride == 0 or length == 1:
            continue
        index, rest = divmod(rest, abs(stride))
        if not 0 <= index < length:
            return None
        place[axis] = index if stride > 0 else length - 1 - index
    return place if 0 <= rest < region.itemsize else None


def indices(region: Region, number: int) -> tuple[int, ...]:
    """Return the indices of the element with a number in C order."""
    place: list[int] = []
    for length in reversed(region.shape):
        number, index = divmod(number, length)
        place.append(index)
    return tuple(reversed(place))


def text(region: Region, found: Elements | None) -> str:
    """Return the elements in words: ``"elements 0 to 63 of 64"``, or ``"elements [0, 4] to [3, 7] of 8 x 8"``."""
    what = "byte" if region.itemsize == 1 and len(region.shape) == 1 else "element"
    whole = " x ".join(map(str, region.shape)) or "1"
    if found is None:
        return f"{what}s of {whole}"
    if len(region.shape) > 1:
        first, last = (str(list(indices(region, number))) for number in found)
    else:
        first, last = str(found.first), str(found.last)
    if first == last:
        return f"{what} {first} of {whole}"
    return f"{what}s {first} to {last} of {whole}"
