"""The ranges of memory that the segments had at every event."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda._viz.memory.history import BEFORE

if TYPE_CHECKING:
    from collections.abc import Sequence

_BEGINS = ("segment_alloc", "segment_map")
_ENDS = ("segment_free", "segment_unmap")


@dataclass(slots=True)
class Span:
    """A range of reserved memory, from one event to another."""

    address: int
    size: int
    stream: int
    pool: tuple[int, ...] | None
    """The pool of the segment; None if the segment was freed, because events do not tell the pool."""
    start: int
    """The event that reserved the memory; 0 if the memory was reserved before the trace."""
    end: int | None
    """The event that released the memory; None if the memory was reserved at the end of the trace."""


def spans(trace: Sequence[dict[str, Any]], segments: Sequence[dict[str, Any]]) -> list[Span]:
    """Return the ranges of all segments of one device, from the events and the segments at the end.

    The events are read from the last to the first, because only the end of the trace is known completely.
    """
    found: list[Span] = []
    reserved = _Reserved()
    for segment in segments:
        pool = tuple(segment.get("segment_pool_id", (0, 0)))
        stream = segment.get("stream", 0)
        reserved.add(Span(segment["address"], segment["total_size"], stream, pool, BEFORE, None))
    for number in range(len(trace), 0, -1):
        event = trace[number - 1]
        if event["action"] in _ENDS:
            reserved.add(Span(event["addr"], event["size"], event.get("stream", 0), None, BEFORE, number))
        elif event["action"] in _BEGINS:
            found += reserved.begin(event["addr"], event["size"], number)
    return sorted([*found, *reserved.spans()], key=lambda span: (span.start, span.address))


class _Reserved:
    """The spans at one event, by address. The addresses are sorted too, so that no event looks at all spans."""

    def __init__(self) -> None:
        self._at: dict[int, Span] = {}
        self._addresses: list[int] = []

    def spans(self) -> list[Span]:
        return list(self._at.values())

    def add(self, span: Span) -> None:
        """Add a span, unless one is at its address: such a file has no consistent history."""
        if span.address not in self._at:
            self._at[span.address] = span
            insort(self._addresses, span.address)

    def begin(self, address: int, size: int, event: int) -> list[Span]:
        """Return the spans that began with an event, and leave those parts that were there before the event."""
        end = address + size
        place = max(bisect_right(self._addresses, address) - 1, 0)
        if place < len(self._addresses) and self._end_of(place) <= address:
            place += 1
        last = place
        while last < len(self._addresses) and self._addresses[last] < end:
            last += 1
        hit = [self._at.pop(start) for start in self._addresses[place:last]]
        del self._addresses[place:last]
        begun = []
        for span in hit:
            low, high = max(address, span.address), min(end, span.address + span.size)
            begun.append(Span(low, high - low, span.stream, span.pool, event, span.end))
            for part, part_end in ((span.address, low), (high, span.address + span.size)):
                if part < part_end:
                    self.add(Span(part, part_end - part, span.stream, span.pool, BEFORE, span.end))
        return begun

    def _end_of(self, place: int) -> int:
        span = self._at[self._addresses[place]]
        return span.address + span.size


__all__ = ["Span", "spans"]
