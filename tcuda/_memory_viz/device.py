"""The part of a snapshot that belongs to one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda._memory_viz.history import History, history
from tcuda._memory_viz.segments import Group, groups
from tcuda._memory_viz.sites import Site, sites
from tcuda._memory_viz.spans import Span, spans
from tcuda._pages.stacks import Stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._memory_viz.read import Snapshot


@dataclass(slots=True)
class Device:
    """The content of a snapshot for one device."""

    index: int
    events: int
    history: History
    sites: list[Site]
    groups: list[Group]
    spans: list[Span]

    @property
    def peak_bytes(self) -> int:
        """The peak of the allocated bytes."""
        return self.history.live[self.history.peak]

    @property
    def bytes_at_end(self) -> int:
        """The allocated bytes at the end."""
        return self.history.live[-1]

    @property
    def segments(self) -> int:
        """The number of segments."""
        return sum(len(group.segments) for group in self.groups)

    @property
    def reserved_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(group.reserved for group in self.groups)


def devices(snapshot: Snapshot, stacks: Stacks | None = None) -> tuple[list[Device], Stacks]:
    """Return the devices that have events or segments in a snapshot, or an empty device 0, and the stacks of them.

    Args:
        snapshot: The snapshot.
        stacks: The collection to which the stacks are added, such as that of another snapshot; a new one if None.
    """
    traces = snapshot.get("device_traces", [])
    stacks = Stacks() if stacks is None else stacks
    segments_of: dict[int, list[dict[str, Any]]] = {}
    for segment in snapshot["segments"]:
        segments_of.setdefault(segment.get("device", 0), []).append(segment)
    used = {index for index, trace in enumerate(traces) if trace} | set(segments_of)
    found = []
    for index in sorted(used or {0}):
        trace = traces[index] if 0 <= index < len(traces) else []
        segments = segments_of.get(index, [])
        past = history(trace, segments, stacks)
        found.append(
            Device(index, len(trace), past, sites(past, stacks), groups(segments, stacks), spans(trace, segments))
        )
    return found, stacks


def empty_device(index: int, stacks: Stacks) -> Device:
    """Return a device without events and segments."""
    return Device(index, 0, history([], [], stacks), [], [], [])


def busiest(devices: Sequence[Device]) -> Device:
    """Return the device with the highest peak."""
    return max(devices, key=lambda device: device.peak_bytes)


__all__ = ["Device", "busiest", "devices", "empty_device"]
