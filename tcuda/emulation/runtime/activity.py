"""The activity of an emulated device: the times of its operations, and how long the device has worked in all."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcuda.emulation.runtime.clock import Clock

_KEPT = 4096
"""The number of operations from which on older ones become a part of a sum, at the next wait of the host."""
_MOST = 1_000_000
"""The operations that a device keeps until the host waits. Newer ones replace older ones, so that memory is bounded."""


class Activity(deque[tuple[int, int]]):
    """Start and end, in emulated nanoseconds, of the latest operations of a device.

    Args:
        clock: The clock. No operation starts before the time at which the operation is added.
    """

    def __init__(self, clock: Clock) -> None:
        # The method `append` stays that of the deque: every operation calls the method, and Python code would be slow.
        super().__init__(maxlen=_MOST)
        self._clock = clock
        clock._after_waits.append(self._shorten)
        self._summed = 0
        """The nanoseconds of work before ``_until``."""
        self._until = 0
        self._enough = _KEPT

    def _shorten(self) -> None:
        """Keep fewer operations if there are many. The caller holds the lock of the clock."""
        if len(self) > self._enough:
            self._sum_up()

    def within(self, start: int, end: int) -> int:
        """Return the nanoseconds of work from ``start`` to ``end``, without operations that are in the sum only."""
        return _covered(self._found(), start, end)

    def until(self, now: int) -> int:
        """Return the nanoseconds of work from the beginning to ``now``, the present time."""
        with self._clock._lock:
            self._add_until(self._found(), now)
            return self._summed

    def _found(self) -> list[tuple[int, int]]:
        with self._clock._lock:  # other threads add operations meanwhile
            return list(self)

    def _add_until(self, found: list[tuple[int, int]], now: int) -> None:
        """Let the sum have the work until ``now``. Later operations start later, so that the sum stays right."""
        self._summed += _covered(found, self._until, now)
        self._until = now

    def _sum_up(self) -> None:
        """Join operations without a gap, and leave out those that are complete, which the sum has."""
        now = self._clock.now()
        # A garbage collection may add an operation meanwhile, so that no operation may be removed unseen.
        found = [self.popleft() for _ in range(len(self))]
        self._add_until(found, now)
        joined = deque(_joined(found))
        while len(joined) > _KEPT // 2 and joined[0][1] <= now:
            joined.popleft()
        self.extendleft(reversed(joined))
        self._enough = max(_KEPT, 2 * len(joined))


def _joined(intervals: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the union of ``intervals`` as intervals with gaps between them, in their order."""
    ordered = iter(sorted(intervals))
    first, last = next(ordered)
    for start, end in ordered:
        if start > last:
            yield first, last
            first = start
        last = max(last, end)
    yield first, last


def _covered(intervals: Iterable[tuple[int, int]], start: int, end: int) -> int:
    """Return how much of the time from ``start`` to ``end`` lies in at least one of ``intervals``."""
    covered = 0
    for first, last in sorted(intervals):
        start = max(start, first)  # the time before is counted already, or lies in no interval
        stop = min(last, end)
        if stop > start:
            covered += stop - start
            start = stop
    return covered
