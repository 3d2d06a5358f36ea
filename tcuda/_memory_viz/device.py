"""All that the page shows of one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda._memory_viz.history import History, history
from tcuda._memory_viz.segments import Group, groups
from tcuda._memory_viz.sites import Site, sites
from tcuda._memory_viz.stacks import Stacks

if TYPE_CHECKING:
    from tcuda._memory_viz.read import Snapshot


@dataclass(slots=True)
class Device:
    """What a snapshot tells about a device."""

    index: int
    events: int
    history: History
    sites: list[Site]
    groups: list[Group]

    @property
    def peak_bytes(self) -> int:
        """The most that was ever allocated at once."""
        return self.history.live[self.history.peak]

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return sum(len(group.segments) for group in self.groups)

    @property
    def reserved_bytes(self) -> int:
        """The size of all segments."""
        return sum(group.reserved for group in self.groups)


def devices(snapshot: Snapshot) -> tuple[list[Device], Stacks]:
    """Return the devices that a snapshot has anything of, at least one, and the stacks that they refer to."""
    traces = snapshot.get("device_traces", [])
    stacks = Stacks()
    segments_of: dict[int, list[dict[str, Any]]] = {}
    for segment in snapshot["segments"]:
        segments_of.setdefault(segment.get("device", 0), []).append(segment)
    used = {index for index, trace in enumerate(traces) if trace} | set(segments_of)
    found = []
    for index in sorted(used or {0}):
        trace = traces[index] if 0 <= index < len(traces) else []
        segments = segments_of.get(index, [])
        past = history(trace, segments, stacks)
        found.append(Device(index, len(trace), past, sites(past, stacks), groups(segments, stacks)))
    return found, stacks


__all__ = ["Device", "devices"]
