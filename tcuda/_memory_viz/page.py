"""The page: data, style and script in one text of HTML."""

from __future__ import annotations

import base64
import hashlib
import heapq
import html
import json
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from tcuda._memory_viz.device import devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._memory_viz.device import Device
    from tcuda._memory_viz.history import Allocation, History
    from tcuda._memory_viz.read import Snapshot
    from tcuda._memory_viz.segments import Group, Segment
    from tcuda._memory_viz.sites import Site, Usage
    from tcuda._memory_viz.stacks import Stacks

BANDS = 2000
"""The most allocations that are drawn one by one. More would not be visible, and would make the page large and slow."""

_SCRIPTS = ("text", "data", "details", "axes", "bands", "picture", "timeline", "segments", "sites", "page")


def page(snapshot: Snapshot, title: str = "Allocator snapshot") -> str:
    """Return a page of HTML that shows ``snapshot``.

    Args:
        snapshot: The result of ``_snapshot()`` or of ``read_snapshot()``.
        title: The title of the page, such as the name of a file.
    """
    return render(*devices(snapshot), title)


def render(devices: Sequence[Device], stacks: Stacks, title: str) -> str:
    """Return the page that shows ``devices``."""
    style, script = _asset("page.css"), _script()
    data = {"title": title, **_stacks(stacks), "devices": [_device(device) for device in devices]}
    text = Template(_asset("page.html")).substitute(
        title=html.escape(title),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:",
        style=style,
        script=script,
        # The name of a function may contain "</script>" or "<!--", so no "<" is left in the data.
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    )
    return text.encode(errors="replace").decode()  # The names of files may have surrogates, which UTF-8 cannot encode.


def _asset(name: str) -> str:
    return (resources.files("tcuda._memory_viz") / "assets" / name).read_text(encoding="utf-8")


def _script() -> str:
    """Return all scripts in one function, so that their names cannot collide with names of the browser."""
    return "(() => {\n" + "\n".join(_asset(f"{name}.js") for name in _SCRIPTS) + "})();"


def _hash(text: str) -> str:
    """Return the source by which a content security policy allows an element with the content ``text``."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _stacks(stacks: Stacks) -> dict[str, Any]:
    names: dict[str, int] = {}  # Most names and files are in many frames, so each is stored once.
    frames = [
        (
            names.setdefault(frame.name, len(names)),
            names.setdefault(frame.filename, len(names)),
            frame.line,
            int(stacks.is_user(number)),
        )
        for number, frame in enumerate(stacks.frames)
    ]
    sites = [stacks.site(stack) for stack in range(len(stacks.stacks))]
    return {"texts": list(names), "frames": frames, "stacks": stacks.stacks, "siteOfStack": sites}


def _device(device: Device) -> dict[str, Any]:
    past = device.history
    drawn = _largest(past, BANDS)
    return {
        "index": device.index,
        "events": device.events,
        "peak": past.peak,
        "live": _differences(past.live),
        "times": _differences(past.times),
        "reserved": past.reserved,
        "reservedAtEnd": device.reserved_bytes,
        "marks": [(mark.event, mark.action, mark.size, mark.device_free) for mark in past.marks],
        "allocations": len(past.allocations),
        "beforeTrace": sum(allocation.start == 0 for allocation in past.allocations),
        "bands": [_band(allocation) for allocation in drawn],
        "sites": [_site(site) for site in device.sites],
        "groups": [_group(group) for group in device.groups],
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


def _usage(usage: Usage) -> tuple[int, int, int, int]:
    return usage.at_peak, usage.at_end, usage.count, usage.total


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
