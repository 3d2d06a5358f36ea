"""The uses of page-locked memory of the host by work that is queued on streams, and by graphs."""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING

from tcuda.emulation.runtime.address_ranges import AddressRanges
from tcuda.emulation.runtime.host_holds import HostHold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcuda.emulation.runtime.clock import Clock
    from tcuda.emulation.runtime.host_holds import Range
    from tcuda.emulation.runtime.schedule import Operation
    from tcuda.emulation.runtime.timeline import Timeline


class _Use:
    """The uses of a range of memory.

    Attributes:
        ready: The time at which all work is complete.
        last: The last operation of each stream in the late schedule, in the order of the uses. A stream does its work
            in order, so this operation stands for all work of the stream.
        holds: The numbers of the objects that keep the range in use.
    """

    __slots__ = ("holds", "last", "ready")

    def __init__(self) -> None:
        self.ready = 0
        self.last: dict[Timeline, Operation] = {}
        self.holds: set[int] = set()

    def add(self, ready: int, last: dict[Timeline, Operation], holds: set[int]) -> None:
        """Add later uses."""
        if ready > self.ready:
            self.ready = ready
        for timeline, operation in last.items():
            self.last.pop(timeline, None)
            while (oldest := next(iter(self.last), None)) is not None and self.last[oldest].done:
                del self.last[oldest]
            self.last[timeline] = operation
        if holds:
            self.holds |= holds


class HostUses:
    """The uses of the page-locked memory of the allocator. The caller of each method holds the lock of the clock.

    Memory that the program has page-locked itself is not the allocator's, and its uses are not noted. The uses of
    ranges that overlap are noted as one: memory of one block is free only if all of the block is.

    Args:
        clock: The clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._segments: AddressRanges[None] = AddressRanges()
        self._uses: AddressRanges[_Use] = AddressRanges()
        self._visits: deque[tuple[int, _Use]] = deque()
        """The address of each use, in the order in which the uses are looked at to forget those that are complete."""
        self._living: set[int] = set()
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._uses)

    def begin(self, ptr: int, size: int) -> None:
        """Take note of a segment of the allocator."""
        self._segments.add(ptr, ptr + size, None)

    def end(self, ptr: int) -> None:
        """Forget a segment of the allocator."""
        self._segments.remove(ptr)

    def add(self, ranges: Iterable[Range], timeline: Timeline, ready: int) -> None:
        """Take note of the use of ``ranges`` by work.

        Args:
            ranges: The memory.
            timeline: The stream of the work, which is the last work of the stream.
            ready: The time at which the work is complete.
        """
        operation = timeline.last
        last = {} if operation is None or operation.done else {timeline: operation}
        for range_ in ranges:
            self._add(range_, ready, last, set())

    def hold(self, ranges: Iterable[Range]) -> HostHold:
        """Return an object that keeps ``ranges`` in use while it lives."""
        hold = HostHold(self._living, number := next(self._numbers))
        for range_ in ranges:
            self._add(range_, 0, {}, {number})
        return hold

    def in_use(self, ptr: int, size: int, finished: Callable[[int, Iterable[Operation]], bool]) -> bool:
        """Return whether work or a graph uses a part of the memory.

        Args:
            ptr: The address.
            size: The number of bytes.
            finished: A function that returns whether work is complete, given its time and its operations.
        """
        for use in self._uses.overlapping(ptr, ptr + size):
            if self._is_held(use.value) or not finished(use.value.ready, [*use.value.last.values()]):
                return True
            self._uses.remove(use.begin)
        return False

    def _add(self, range_: Range, ready: int, last: dict[Timeline, Operation], holds: set[int]) -> None:
        begin, end = range_[0], sum(range_)
        if self._segments.at(begin) is None:
            return
        known = self._uses.overlapping(begin, end)
        if len(known) == 1 and known[0].begin <= begin and end <= known[0].end:
            known[0].value.add(ready, last, holds)
            return
        self._forget_complete()
        use = _Use()
        for each in known:
            self._uses.remove(each.begin)
            use.add(each.value.ready, each.value.last, each.value.holds)
            begin, end = min(begin, each.begin), max(end, each.end)
        use.add(ready, last, holds)
        self._uses.add(begin, end, use)
        self._visits.append((begin, use))

    def _forget_complete(self) -> None:
        """Look at two uses, so that a program that frees no memory keeps no more uses than twice those in progress."""
        for _ in range(2):
            if not self._visits:
                return
            begin, use = self._visits.popleft()
            known = self._uses.at(begin)
            if known is None or known.value is not use:
                continue
            last = use.last.values()
            if use.ready > self._clock.now() or self._is_held(use) or not all(operation.done for operation in last):
                self._visits.append((begin, use))
            else:
                self._uses.remove(begin)

    def _is_held(self, use: _Use) -> bool:
        use.holds &= self._living
        return bool(use.holds)
