"""What was allocated when: a trace of events, put together with the blocks that were there at its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tcuda._memory_viz.stacks import NO_STACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda._memory_viz.stacks import Stacks

BEFORE = 0  # events count from 1

_SEGMENT_SIGNS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_MARKS = ("oom", "snapshot")
_NO_NOTES = ("", "N/A")
_LONGEST_NOTE = 1000  # characters; a text of many megabytes may be the note of every allocation


@dataclass(slots=True)
class Allocation:
    """A piece of memory from its allocation to the end of its free. Sizes are as requested."""

    address: int
    size: int
    stream: int
    stack: int
    start: int
    """The event that allocated it; 0 if that was before the trace began."""
    released: int | None = None
    """The event that asked for its free, after which work on other streams may still use it."""
    end: int | None = None
    """The event after which others may have the memory; None if it was alive at the end of the trace."""
    freed_by: int = NO_STACK
    note: str = ""

    def is_live(self, event: int) -> bool:
        """Return whether it held memory right after ``event``."""
        return self.start <= event and (self.end is None or event < self.end)


@dataclass(slots=True)
class Mark:
    """An event that is no allocation and worth a line across the picture."""

    event: int
    action: str
    size: int
    device_free: int | None


@dataclass(slots=True)
class History:
    """All that a trace tells."""

    allocations: list[Allocation]
    """In the order in which they began; of those from before the trace, the longest-lived first."""
    live: list[int]
    """Bytes allocated before the trace and after each of its events."""
    reserved: list[tuple[int, int]]
    """Events after which the segments had another size, with that size; empty if the trace has no such event."""
    times: list[int]
    """Microseconds since the epoch, an event each; empty if the trace does not tell."""
    marks: list[Mark]

    @property
    def peak(self) -> int:
        """The first event after which most was allocated, 0 if that was before all events."""
        return self.live.index(max(self.live))


def history(trace: Sequence[dict[str, Any]], segments: Sequence[dict[str, Any]], stacks: Stacks) -> History:
    """Return what happened on one device.

    Args:
        trace: The events of the device. The first ones may be lost, or all.
        segments: The segments of the device at the end of the trace.
        stacks: Where to keep the stacks.
    """
    allocations = _Replay(stacks, trace).allocations(active_blocks(segments))
    return History(
        allocations,
        _live(allocations, len(trace)),
        _reserved(trace, sum(segment["total_size"] for segment in segments)),
        _times(trace),
        [
            Mark(number, event["action"], event["size"], event.get("device_free"))
            for number, event in enumerate(trace, 1)
            if event["action"] in _MARKS
        ],
    )


def active_blocks(segments: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the blocks that are in use, by address, each with the ``stream`` of its segment."""
    found = {}
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            address = block.get("address", address)  # older versions of torch left it out
            if block["state"].startswith("active"):
                found[address] = {**block, "stream": segment.get("stream", 0)}
            address += block["size"]
    return found


class _Replay:
    def __init__(self, stacks: Stacks, trace: Sequence[dict[str, Any]]) -> None:
        self._stacks = stacks
        self._trace = trace
        self._found: list[Allocation] = []
        self._open: dict[int, Allocation] = {}
        self._latest: dict[int, Allocation] = {}
        # Whoever records can leave out kinds of events.
        completed = any(event["action"] == "free_completed" for event in trace)
        self._last_of_free = "free_completed" if completed else "free_requested"

    def allocations(self, blocks_at_end: dict[int, dict[str, Any]]) -> list[Allocation]:
        for number, event in enumerate(self._trace, 1):
            if event["action"] == "alloc":
                self._alloc(number, event)
            elif event["action"] in ("free_requested", "free_completed"):
                self._free(number, event)
        for address, block in blocks_at_end.items():
            self._alive_at_end(address, block)
        never = len(self._trace) + 1
        return sorted(
            self._found, key=lambda found: (found.start, 0 if found.start else -(found.end or never), found.address)
        )

    def _alloc(self, number: int, event: dict[str, Any]) -> None:
        if earlier := self._open.pop(event["addr"], None):
            earlier.end = number  # its free was not recorded
        self._begin(number, event["addr"], event["size"], event).note = ", ".join(
            text[:_LONGEST_NOTE]
            for text in (event.get("user_metadata"), event.get("compile_context"))
            if text and text not in _NO_NOTES
        )

    def _free(self, number: int, event: dict[str, Any]) -> None:
        address = event["addr"]
        if address not in self._open:
            if address in self._latest:
                return
            # Allocated before the trace began, by whom it does not tell: the event has the stack of the free.
            self._begin(BEFORE, address, event["size"], {"stream": event.get("stream", 0)})
        freed = self._open[address]
        if event["action"] == "free_requested":
            freed.released = number
            freed.freed_by = self._stacks.number(event.get("frames", ()))
        if event["action"] == self._last_of_free:
            freed.end = number
            del self._open[address]

    def _alive_at_end(self, address: int, block: dict[str, Any]) -> None:
        known = self._latest.get(address)
        if known and known.released == known.end and block["state"] != "active_allocated":
            known.end = None  # the end of its free was not left out: it has not come yet
        if known and known.end is None:
            known.stack = known.stack or self._stacks.number(block.get("frames", ()))
            return
        self._begin(BEFORE, address, block.get("requested_size") or block["size"], block)

    def _begin(self, number: int, address: int, size: int, event: dict[str, Any]) -> Allocation:
        stack = self._stacks.number(event.get("frames", ()))
        new = Allocation(address, size, event.get("stream", 0), stack, number)
        self._found.append(new)
        self._open[address] = new
        self._latest[address] = new
        return new


def _live(allocations: Iterable[Allocation], events: int) -> list[int]:
    change: Counter[int] = Counter()
    for allocation in allocations:
        change[allocation.start] += allocation.size
        if allocation.end is not None:
            change[allocation.end] -= allocation.size
    return list(accumulate(change[event] for event in range(events + 1)))


def _reserved(trace: Sequence[dict[str, Any]], at_end: int) -> list[tuple[int, int]]:
    changes = [
        (number, _SEGMENT_SIGNS[event["action"]] * event["size"])
        for number, event in enumerate(trace, 1)
        if event["action"] in _SEGMENT_SIGNS
    ]
    if not changes:
        return []
    size = at_end - sum(change for _, change in changes)
    steps = [(BEFORE, size)]
    for number, change in changes:
        size += change
        steps.append((number, size))
    return steps


def _times(trace: Sequence[dict[str, Any]]) -> list[int]:
    if not all("time_us" in event for event in trace):
        return []
    return list(accumulate((event["time_us"] for event in trace), max))


__all__ = ["BEFORE", "Allocation", "History", "Mark", "active_blocks", "history"]
