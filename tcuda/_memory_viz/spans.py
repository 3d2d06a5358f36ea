"""The ranges of memory that the segments had at every event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda._memory_viz.history import BEFORE

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
    open_at: dict[int, Span] = {}
    for segment in segments:
        pool = tuple(segment.get("segment_pool_id", (0, 0)))
        span = Span(segment["address"], segment["total_size"], segment.get("stream", 0), pool, BEFORE, None)
        open_at[span.address] = span
    for number in range(len(trace), 0, -1):
        event = trace[number - 1]
        if event["action"] in _ENDS:
            address = event["addr"]
            if address not in open_at:
                open_at[address] = Span(address, event["size"], event.get("stream", 0), None, BEFORE, number)
        elif event["action"] in _BEGINS:
            found += _begin(open_at, event["addr"], event["size"], number)
    return sorted([*found, *open_at.values()], key=lambda span: (span.start, span.address))


def _begin(open_at: dict[int, Span], address: int, size: int, event: int) -> list[Span]:
    """Return the spans that began with an event, and leave those parts open that were there before the event."""
    exact = open_at.get(address)
    if exact is not None and exact.size == size:
        del open_at[address]
        exact.start = event
        return [exact]
    begun = []
    end = address + size
    for span in [span for span in open_at.values() if span.address < end and address < span.address + span.size]:
        del open_at[span.address]
        low, high = max(address, span.address), min(end, span.address + span.size)
        begun.append(Span(low, high - low, span.stream, span.pool, event, span.end))
        for part, part_end in ((span.address, low), (high, span.address + span.size)):
            if part < part_end:
                open_at[part] = Span(part, part_end - part, span.stream, span.pool, BEFORE, span.end)
    return begun


__all__ = ["Span", "spans"]
