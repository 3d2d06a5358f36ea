"""The page: data, style and script in one text of HTML."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any

from tcuda._viz.memory.columns import column
from tcuda._viz.memory.device import devices
from tcuda._viz.memory.words import peak_sentence
from tcuda._viz.shared import document, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._viz.memory.comparison import Comparison
    from tcuda._viz.memory.device import Device
    from tcuda._viz.memory.history import Allocation, History
    from tcuda._viz.memory.read import Snapshot
    from tcuda._viz.memory.segments import Group, Segment
    from tcuda._viz.memory.sites import Site, Usage
    from tcuda._viz.memory.spans import Span
    from tcuda._viz.shared.stacks import Stacks

BANDS = 2000
"""The most allocations that are drawn one by one. More would not be visible, and would make the page large and slow."""

_SCRIPTS = (
    "data",
    "columns",
    "past",
    "filter",
    "details",
    "axes",
    "bands",
    "picture",
    "timeline",
    "segments",
    "sites",
    "comparison",
    "page",
)


def page(snapshot: Snapshot, title: str = "Allocator snapshot") -> str:
    """Return a page of HTML that shows ``snapshot``.

    Args:
        snapshot: The result of ``_snapshot()`` or of ``read_snapshot()``.
        title: The title of the page, such as the name of a file.
    """
    return render(*devices(snapshot), title)


def render(
    devices: Sequence[Device], stacks: Stacks, title: str, comparisons: Sequence[Comparison] | None = None
) -> str:
    """Return the page that shows ``devices``.

    Args:
        devices: The devices of the snapshot.
        stacks: The stacks of the devices.
        title: The title of the page, such as the name of a file.
        comparisons: The comparison of each device with another snapshot, or None.
    """
    packed_devices = [
        _device(device, stacks, compared)
        for device, compared in zip(devices, comparisons or itertools.repeat(None), strict=False)
    ]
    data = {"title": title, **packed(stacks), **_scopes(stacks), "devices": packed_devices}
    return document("tcuda._viz.memory", title, data, _SCRIPTS)


def _scopes(stacks: Stacks) -> dict[str, Any]:
    """Return each scope once, and the scope of each stack; nothing without scopes."""
    if not any(stacks.scopes):
        return {"scopes": [], "scopeOfStack": []}
    numbers: dict[str, int] = {}
    of_stack = [numbers.setdefault(scope, len(numbers)) for scope in stacks.scopes]
    return {"scopes": list(numbers), "scopeOfStack": of_stack}


def _device(device: Device, stacks: Stacks, compared: Comparison | None) -> dict[str, Any]:
    past = device.history
    drawn = _largest(past, BANDS)
    return {
        "index": device.index,
        "name": device.name,
        "events": device.events,
        "peak": past.peak,
        "peakWords": peak_sentence(device, stacks),
        "columns": _columns(past),
        "firstTime": past.times[0] if past.times else 0,
        "spans": [_span(span) for span in device.spans],
        "reserved": past.reserved,
        "reservedAtEnd": device.reserved_bytes,
        "marks": [(mark.event, mark.action, mark.size, mark.device_free) for mark in past.marks],
        "allocations": len(past.allocations),
        "beforeTrace": sum(allocation.start == 0 for allocation in past.allocations),
        "bands": [_band(allocation) for allocation in drawn],
        "sites": [_site(site) for site in device.sites],
        "groups": [_group(group) for group in device.groups],
        "compared": None if compared is None else _comparison(compared),
    }


def _largest(past: History, count: int) -> list[Allocation]:
    """Return the ``count`` largest allocations in the order of their begin; at equal sizes a longer life counts."""
    never = len(past.live)

    def importance(number: int) -> tuple[int, int]:
        allocation = past.allocations[number]
        return allocation.size, (allocation.end or never) - allocation.start

    return [past.allocations[n] for n in sorted(heapq.nlargest(count, range(len(past.allocations)), importance))]


def _differences(values: Sequence[int]) -> list[int]:
    """Return the first value and the steps to the others, which are shorter to write."""
    return [value - before for value, before in zip(values, (0, *values), strict=False)]


def _columns(past: History) -> dict[str, tuple[int, str]]:
    allocations = past.allocations
    return {
        "address": column(allocation.address for allocation in allocations),
        "size": column(allocation.size for allocation in allocations),
        "stack": column(allocation.stack for allocation in allocations),
        "start": column(_differences([allocation.start for allocation in allocations])),
        "released": column(allocation.released for allocation in allocations),
        "end": column(allocation.end for allocation in allocations),
        "times": column(_differences([time - past.times[0] for time in past.times])),
    }


def _span(span: Span) -> tuple[Any, ...]:
    return hex(span.address), span.size, hex(span.stream), span.pool, span.start, span.end


def _band(allocation: Allocation) -> tuple[Any, ...]:
    return (
        hex(allocation.address),  # as a number it could be more than JavaScript can count to
        allocation.size,
        hex(allocation.stream),
        allocation.stack,
        allocation.start,
        allocation.released,
        allocation.end,
        allocation.freed_by,
        allocation.note,
    )


def _site(site: Site) -> tuple[Any, ...]:
    return site.frame, *_usage(site.usage), [(stack, *_usage(usage)) for stack, usage in site.stacks.items()]


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "name": comparison.name,
        "peak": comparison.peak_bytes,
        "end": comparison.bytes_at_end,
        "rows": [
            (found.frame, found.stacks, _usage(found.first), _usage(found.second)) for found in comparison.differences
        ],
    }


def _usage(usage: Usage) -> tuple[int, int, int, int, int]:
    return usage.at_peak, usage.at_end, usage.alive, usage.count, usage.total


def _group(group: Group) -> dict[str, Any]:
    return {
        "pool": group.pool,
        "stream": hex(group.stream),
        "largestFree": group.largest_free,
        "rounding": group.rounding,
        "segments": [_segment(segment) for segment in group.segments],
    }


def _segment(segment: Segment) -> tuple[Any, ...]:
    blocks = [
        (hex(segment.address + block.offset), block.offset, block.size, block.requested, block.state, block.stack)
        for block in segment.blocks
    ]
    return hex(segment.address), segment.size, segment.kind, int(segment.expandable), segment.stack, blocks


__all__ = ["BANDS", "page", "render"]
