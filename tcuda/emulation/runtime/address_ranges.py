"""Ranges of addresses that do not overlap, each with a value."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from tcuda import _core

T = TypeVar("T")
_HIGHEST = 2**64 - 1


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

    A garbage collection may add and remove other ranges while a method runs. So a range counts only if the range is
    still there after its address was found.
    """

    def __init__(self) -> None:
        self._begins = _core.AddressSet()
        self._ranges: dict[int, AddressRange[T]] = {}

    def __len__(self) -> int:
        return len(self._ranges)

    def add(self, begin: int, end: int, value: T) -> None:
        """Add a range, which overlaps no other, or replaces the range that begins at ``begin``."""
        self._ranges[begin] = AddressRange(begin, end, value)
        self._begins.add(begin)

    def remove(self, begin: int) -> AddressRange[T] | None:
        """Remove and return the range that begins at ``begin``; None without such a range."""
        removed = self._ranges.pop(begin, None)
        if removed is not None:
            self._begins.discard(begin)
        return removed

    def beginning_at(self, begin: int) -> AddressRange[T] | None:
        """Return the range that begins at ``begin``; None without such a range."""
        return self._ranges.get(begin)

    def at(self, address: int) -> AddressRange[T] | None:
        """Return the range that contains ``address``; None if no range does."""
        begin = self._begins.at_or_below(address)
        found = None if begin is None else self._ranges.get(begin)
        return found if found is not None and address < found.end else None

    def overlapping(self, begin: int, end: int) -> list[AddressRange[T]]:
        """Return the ranges that contain an address from ``begin`` to before ``end``, in their order."""
        first = self.at(begin)
        found = [] if first is None else [first]
        place = self._begins.above(begin)
        while place is not None and place < end:
            following = self._ranges.get(place)
            if following is not None:
                found.append(following)
            place = self._begins.above(place)
        return found

    def bounds(self) -> list[tuple[int, int]]:
        """Return the beginning of the first range and the end of the last one, or an empty list without ranges."""
        first, last = self._begins.above(0), self._begins.at_or_below(_HIGHEST)
        found = None if last is None else self._ranges.get(last)
        return [] if first is None or found is None else [(first, found.end)]

    def copy(self) -> list[AddressRange[T]]:
        """Return all ranges."""
        return [*self._ranges.copy().values()]
