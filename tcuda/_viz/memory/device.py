"""The part of a snapshot that belongs to one device, or to the page-locked memory of the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcuda._viz.memory.history import History, history
from tcuda._viz.memory.segments import Group, groups
from tcuda._viz.memory.sites import Site, sites
from tcuda._viz.memory.spans import Span, spans
from tcuda._viz.shared.stacks import Stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._viz.memory.read import Snapshot


HOST = -1
"""The index of the page-locked memory of the host, which a page shows like the memory of one more device."""


@dataclass(slots=True)
class Device:
    """The content of a snapshot for one device, or for the page-locked memory of the host."""

    index: int
    events: int
    history: History
    sites: list[Site]
    groups: list[Group]
    spans: list[Span]

    @property
    def name(self) -> str:
        """The name in a sentence, such as ``device 0``."""
        return "page-locked host memory" if self.index == HOST else f"device {self.index}"

    @property
    def order(self) -> tuple[bool, int]:
        """The place among the devices of a snapshot: page-locked memory is the last."""
        return self.index == HOST, self.index

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

    The page-locked memory of the host is the last device, if the snapshot has such memory.

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
        found.append(_device(index, trace, segments_of.get(index, []), stacks))
    host_trace, host_segments = snapshot.get("host_trace", []), snapshot.get("host_segments", [])
    # A history without page-locked memory has the events of snapshots.
    if host_segments or any(event["action"] != "snapshot" for event in host_trace):
        found.append(_device(HOST, host_trace, host_segments, stacks))
    return found, stacks


def _device(index: int, trace: list[dict[str, Any]], segments: list[dict[str, Any]], stacks: Stacks) -> Device:
    past = history(trace, segments, stacks)
    return Device(index, len(trace), past, sites(past, stacks), groups(segments, stacks), spans(trace, segments))


def empty_device(index: int, stacks: Stacks) -> Device:
    """Return a device without events and segments."""
    return Device(index, 0, history([], [], stacks), [], [], [])


def busiest(devices: Sequence[Device]) -> Device:
    """Return the device with the highest peak; page-locked memory only if no device has allocated memory."""
    return max(devices, key=lambda device: (device.index != HOST and device.peak_bytes > 0, device.peak_bytes))


__all__ = ["HOST", "Device", "busiest", "devices", "empty_device"]
