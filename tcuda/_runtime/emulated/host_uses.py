"""The uses of page-locked memory of the host by work that is queued on streams, and by graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcuda._runtime.emulated.host_holds import HostHold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcuda._runtime.emulated.clock import Clock
    from tcuda._runtime.emulated.host_holds import Range
    from tcuda._runtime.emulated.schedule import Operation


class _Use(NamedTuple):
    """A use of memory: its time, and the operation in the late schedule."""

    ptr: int
    size: int
    ready: int
    operation: Operation | None


class HostUses:
    """The uses of the page-locked memory of the allocator. The caller of each method holds the lock of the clock.

    Memory that the program has page-locked itself is not the allocator's, and its uses are not noted.

    Args:
        clock: The clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._segments: dict[int, int] = {}
        self._uses: list[_Use] = []
        self._holds: dict[int, tuple[Range, ...]] = {}

    def begin(self, ptr: int, size: int) -> None:
        """Take note of a segment of the allocator."""
        self._segments[ptr] = size

    def end(self, ptr: int) -> None:
        """Forget a segment of the allocator."""
        self._segments.pop(ptr, None)

    def _is_allocated(self, ptr: int) -> bool:
        return any(start <= ptr < start + size for start, size in list(self._segments.items()))

    def add(self, ranges: Iterable[Range], ready: int, operation: Operation | None) -> None:
        """Take note of the use of ``ranges`` by work.

        Args:
            ranges: The memory.
            ready: The time at which the work is complete.
            operation: The operation that does the work in the late schedule.
        """
        own = [each for each in ranges if self._is_allocated(each[0])]
        if not own:
            return
        now = self._clock.now()
        # A program that never frees page-locked memory asks for no use, so complete uses are forgotten here too.
        if len(self._uses) >= 64:
            self._uses = [each for each in self._uses if each.ready > now or not _is_done(each.operation)]
        self._uses += [_Use(ptr, size, ready, operation) for ptr, size in own]

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
        return False


def _is_done(operation: Operation | None) -> bool:
    return operation is None or operation.done
