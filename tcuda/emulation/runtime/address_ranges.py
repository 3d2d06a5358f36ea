"""Ranges of addresses that do not overlap, each with a value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class AddressRange(NamedTuple, Generic[T]):
    """A range of addresses.

    Attributes:
        begin: The first address.
        end: The address behind the last one.
        value: The value of the range.
    """

    begin: int
    end: int
    value: T


class AddressRanges(Generic[T]):
    """Ranges of addresses that do not overlap, each with a value.

    A garbage collection may add and remove other ranges while a method runs. So a place in the list of addresses counts
    only if the place is still right after the list was read.
    """

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ranges: dict[int, AddressRange[T]] = {}

    def __len__(self) -> int:
        return len(self._ranges)

    def add(self, begin: int, end: int, value: T) -> None:
        """Add a range, which overlaps no other, or replaces the range that begins at ``begin``."""
        is_new = begin not in self._ranges
        self._ranges[begin] = AddressRange(begin, end, value)
        if is_new:
            insort(self._begins, begin)

    def remove(self, begin: int) -> AddressRange[T] | None:
        """Remove and return the range that begins at ``begin``; None without such a range."""
        removed = self._ranges.pop(begin, None)
        while removed is not None:
            place = bisect_left(self._begins, begin)
            try:
                if self._begins[place] == begin:
                    del self._begins[place]
                    break
            except IndexError:
                pass
        return removed

    def beginning_at(self, begin: int) -> AddressRange[T] | None:
        """Return the range that begins at ``begin``; None without such a range."""
        return self._ranges.get(begin)

    def at(self, address: int) -> AddressRange[T] | None:
        """Return the range that contains ``address``; None if no range does."""
        while True:
            place = bisect_right(self._begins, address)
            before = self._begins[place - 1 : place]
            if place == bisect_right(self._begins, address):
                break
        found = self._ranges.get(before[0]) if before else None
        return found if found is not None and address < found.end else None

    def overlapping(self, begin: int, end: int) -> list[AddressRange[T]]:
        """Return the ranges that contain an address from ``begin`` to before ``end``, in their order."""
        first = self.at(begin)
        found = [] if first is None else [first]
        last = begin if first is not None else begin - 1
        while True:
            place = bisect_right(self._begins, last)
            after = self._begins[place : place + 1]
            if place != bisect_right(self._begins, last):
                continue
            if not after or after[0] >= end:
                return found
            last = after[0]
            following = self._ranges.get(last)
            if following is not None:
                found.append(following)

    def copy(self) -> list[AddressRange[T]]:
        """Return all ranges."""
        return [*self._ranges.copy().values()]
