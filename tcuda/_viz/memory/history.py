"""The history of allocations, from a trace of events and the blocks at the end of the trace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tcuda._viz.shared.stacks import NO_STACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda._viz.shared.stacks import Stacks

BEFORE = 0  # The number of the first event is 1.

_SEGMENT_SIGNS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_MARKS = ("oom", "snapshot")
_NO_NOTES = ("", "N/A")
_LONGEST_NOTE = 1000  # Characters. Without a limit, a text of many megabytes could be the note of every allocation.


@dataclass(slots=True)
class Allocation:
    """Allocated memory, from its allocation to the completion of its free. The size is the requested size."""

    address: int
    size: int
    stream: int
    stack: int
    start: int
    """The event that allocated the memory; 0 if the allocation was before the trace."""
    released: int | None = None
    """The event that requested the free; work on other streams may use the memory after this event."""
    end: int | None = None
    """The event that completed the free; None if the memory was in use at the end of the trace."""
    freed_by: int = NO_STACK
    note: str = ""

    def is_live(self, event: int) -> bool:
        """Return whether the memory was in use right after ``event``."""
        return self.start <= event and (self.end is None or event < self.end)


@dataclass(slots=True)
class Mark:
    """An event that is not an allocation, and for which the picture has a vertical line."""

    event: int
    action: str
    size: int
    device_free: int | None


@dataclass(slots=True)
class History:
    """The history of one device."""

    allocations: list[Allocation]
    """The allocations in the order of their begin; those from before the trace in the reverse order of their end."""
    live: list[int]
    """The allocated bytes, before the trace and after each of its events."""
    reserved: list[tuple[int, int]]
    """The events that changed the size of the segments, each with the new size; empty if there is no such event."""
    times: list[int]
    """The microseconds since the epoch, one number for each event; empty if the trace has no times."""
    marks: list[Mark]

    @property
    def peak(self) -> int:
        """The first event after which the allocated bytes had their peak; 0 if the peak was before all events."""
        return self.live.index(max(self.live))


def history(trace: Sequence[dict[str, Any]], segments: Sequence[dict[str, Any]], stacks: Stacks) -> History:
    """Return the history of one device.

    Args:
        trace: The events of the device. The first events, or all events, may be missing.
        segments: The segments of the device at the end of the trace.
        stacks: The collection to which the stacks are added.
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


def stack_of(memory: dict[str, Any], stacks: Stacks) -> int:
    """Return the number of the stack of a block or an event, in the scope of the memory."""
    return stacks.number(memory.get("frames", ()), (memory.get("scope") or "")[:_LONGEST_NOTE])


def active_blocks(segments: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the blocks that are in use, by address, each with the ``stream`` of its segment."""
    found = {}
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            address = block.get("address", address)  # Blocks of older versions of torch have no address.
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
        # The recording may have left out some kinds of events.
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
            earlier.end = number  # The free of the earlier allocation was not recorded.
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
            # The memory was allocated before the trace. The frames of the event are those of the free, so the stack of
            # the allocation is unknown. The scope is that of the memory.
            self._begin(BEFORE, address, event["size"], {**event, "frames": ()})
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
            known.end = None  # The free was requested and is not complete yet.
        if known and known.end is None:
            if not self._stacks.stacks[known.stack]:
                known.stack = stack_of(block, self._stacks)
            return
        self._begin(BEFORE, address, block.get("requested_size") or block["size"], block)

    def _begin(self, number: int, address: int, size: int, event: dict[str, Any]) -> Allocation:
        stack = stack_of(event, self._stacks)
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


__all__ = ["BEFORE", "Allocation", "History", "Mark", "active_blocks", "history", "stack_of"]
