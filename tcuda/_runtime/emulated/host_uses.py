"""The uses of page-locked memory of the host by work that is queued on streams, and by graphs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from tcuda._runtime.emulated.host_holds import HostHold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcuda._runtime.emulated.clock import Clock
    from tcuda._runtime.emulated.host_holds import Range
    from tcuda._runtime.emulated.schedule import Operation
    from tcuda._runtime.emulated.timeline import Timeline
    from tcuda._runtime.emulated.watch import Watch

_EVENTS = 2**62 + 2**61
"""The first event that a race detector knows. No time, no handle and no event of the allocator is as large."""


class _Use(NamedTuple):
    """A use of memory: its time, and the operation in the late schedule.

    ``event`` is the event behind the use that a race detector knows; 0 if none watched.
    """

    ptr: int
    size: int
    ready: int
    operation: Operation | None
    event: int


class HostUses:
    """The uses of the page-locked memory of the allocator. The caller of each method holds the lock of the clock.

    Memory that the program has page-locked itself is not the allocator's, and its uses are not noted.

    Args:
        clock: The clock.
        races: The watch of a race detector.
    """

    def __init__(self, clock: Clock, races: Watch) -> None:
        self._clock = clock
        self._races = races
        self._segments: dict[int, int] = {}
        self._uses: list[_Use] = []
        self._holds: dict[int, tuple[Range, ...]] = {}
        self._events = itertools.count(_EVENTS)

    def begin(self, ptr: int, size: int) -> None:
        """Take note of a segment of the allocator."""
        self._segments[ptr] = size

    def end(self, ptr: int) -> None:
        """Forget a segment of the allocator."""
        self._segments.pop(ptr, None)

    def _is_allocated(self, ptr: int) -> bool:
        return any(start <= ptr < start + size for start, size in self._segments.items())

    def add(self, ranges: Iterable[Range], timeline: Timeline, ready: int, operation: Operation | None) -> None:
        """Take note of the use of ``ranges`` by work on ``timeline``.

        Args:
            ranges: The memory.
            timeline: The stream.
            ready: The time at which the work is complete.
            operation: The operation that does the work in the late schedule.
        """
        own = [each for each in ranges if self._is_allocated(each[0])]
        if not own:
            return
        detector = self._races.detector
        event = 0
        if detector is not None:
            event = next(self._events)
            detector.event_recorded(event, timeline.device, timeline.handle)
        now = self._clock.now()
        # A program that never frees page-locked memory asks for no use, so complete uses are forgotten here too.
        if len(self._uses) >= 64 and detector is None:
            self._uses = [each for each in self._uses if each.ready > now or not _is_done(each.operation)]
        self._uses += [_Use(ptr, size, ready, operation, event) for ptr, size in own]

    def hold(self, ranges: Iterable[Range]) -> HostHold:
        """Return an object that keeps ``ranges`` in use while it lives."""
        return HostHold(self._holds, ranges)

    def in_use(self, ptr: int, size: int, finished: Callable[[int, Operation | None], bool]) -> bool:
        """Return whether work or a graph uses a part of the memory.

        Args:
            ptr: The address.
            size: The number of bytes.
            finished: A function that returns whether work is complete, given its time and its operation.
        """
        for ranges in list(self._holds.values()):
            if any(start < ptr + size and ptr < start + length for start, length in ranges):
                return True
        complete = [use for use in self._uses if use.ptr < ptr + size and ptr < use.ptr + use.size]
        if not all(finished(use.ready, use.operation) for use in complete):
            return True
        gone = set(map(id, complete))
        self._uses = [use for use in self._uses if id(use) not in gone]
        detector = self._races.detector
        for use in complete:
            if detector is not None and use.event:
                detector.event_synchronized(use.event)
                detector.event_destroyed(use.event)
        return False


def _is_done(operation: Operation | None) -> bool:
    return operation is None or operation.done
