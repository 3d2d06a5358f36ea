"""The page of a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcuda._base.strides import byte_bounds
from tcuda._viz.shared import Stacks, document, packed
from tcuda.sanitizer._page.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RACES = 1000
"""The most races that the page has. The first races of a program are the ones to fix first."""

SYNCS = 1000
"""The most lines with synchronisations that the page has: those that waited most often."""

_SCRIPTS = ("data", "list", "range", "timeline", "race", "syncs", "page")


def render(report: Mapping[str, Any], title: str = "Races") -> str:
    """Return a page of HTML that shows ``report``.

    Args:
        report: The result of ``Report.as_dict()``.
        title: The title of the page, such as the name of the program.
    """
    return document("tcuda.sanitizer._page", title, _Packer().report(report, title), _SCRIPTS)


class _Packer:
    """The report as data of the page: stacks, source lines and events are stored once."""

    def __init__(self) -> None:
        self._stacks = Stacks()
        self._sources = Sources()
        self._events: dict[tuple[Any, ...], int] = {}

    def report(self, report: Mapping[str, Any], title: str) -> dict[str, Any]:
        found = [*report["races"], *report["unwritten_reads"], *report["possible"]]
        races = [self._race(race) for race in found[:RACES]]
        syncs = sorted(report["syncs"], key=lambda sync: -sync["count"])
        return {
            "title": title,
            "found": len(found),
            "unwritten": len(report["unwritten_reads"]),
            "possible": len(report["possible"]),
            "times": sum(race["count"] for race in found),
            "operations": report["operations"],
            "suppressed": report["suppressed"],
            "program": report.get("program"),
            "races": races,
            "causes": [cause["mends"] for cause in report.get("causes", ())],
            "events": list(self._events),
            "syncLines": len(syncs),
            "syncTimes": sum(sync["count"] for sync in syncs),
            "syncs": [(sync["call"], sync["file"], sync["line"], sync["count"]) for sync in syncs[:SYNCS]],
            "sources": self._sources.excerpts(),
            **packed(self._stacks),
        }

    def _race(self, race: Mapping[str, Any]) -> dict[str, Any]:
        previous = race.get("previous")
        allocation = race["allocation"]
        freed = race.get("previous_allocation")
        return {
            "kind": race["kind"],
            "useAfterFree": race.get("use_after_free", False),
            "count": race["count"],
            "cause": race.get("cause"),
            "words": race["words"],
            "elements": race["element_range"],
            "overlap": _extent(race["overlap"], allocation),
            "allocation": allocation and self._allocation(allocation),
            "freed": freed and self._allocation(freed),
            "previous": self._access(previous or race["current"], allocation),
            "isSingle": previous is None,
            "current": self._access(race["current"], allocation),
            "events": [self._event(event) for event in race.get("neighbours", ())],
            "kernel": race.get("kernel"),
        }

    def _access(self, access: Mapping[str, Any], allocation: Mapping[str, Any] | None) -> dict[str, Any]:
        return {
            "operation": access["operation"],
            "argument": access["argument"],
            "kind": access["kind"],
            "device": access["device"],
            "stream": hex(access["stream"]),
            "streamName": access["stream_name"],
            "confidence": access["confidence"],
            "number": access["number"],
            "extent": _extent_of(access, allocation),
            "stack": self._stack(access["stack"]),
            "launchStack": self._stack(access["launch_stack"]),
            "line": access.get("line"),
            "excerpt": access.get("excerpt"),
        }

    def _allocation(self, allocation: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "address": hex(allocation["address"]),
            "size": allocation["size"],
            "device": allocation["device"],
            "stream": hex(allocation["stream"]),
            "stack": self._stack(allocation["stack"]),
            "freedStack": self._stack(allocation.get("freed_stack")),
        }

    def _stack(self, frames: list[dict[str, Any]] | None) -> int:
        stack = self._stacks.number(frames or [])
        site = self._stacks.site(stack)
        if site is not None:
            frame = self._stacks.frames[site]
            self._sources.add(frame.filename, frame.line)
        return stack

    def _event(self, event: Mapping[str, Any]) -> int:
        key = (
            event["number"],
            event["device"],
            hex(event["stream"] or 0),
            event["kind"],
            event["name"],
            None if event["event"] is None else hex(event["event"]),
            event["stream"] is None,  # a wait for the whole device
            event["file"],
            event["line"],
            event.get("own", False),
        )
        return self._events.setdefault(key, len(self._events))


def _extent(overlap: Sequence[int], allocation: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Return the first byte, counted from the start of the allocation, and the number of bytes."""
    address, size = overlap
    return None if allocation is None else (address - allocation["address"], size)


def _extent_of(access: Mapping[str, Any], allocation: Mapping[str, Any] | None) -> tuple[int, int, int] | None:
    """Return the extent of a view, and the number of its bytes, which is smaller if the view has gaps."""
    if allocation is None or "strides" not in access:
        return None
    itemsize, shape = access["itemsize"], access["shape"]
    begin, end = byte_bounds(access["address"], itemsize, shape, access["strides"])
    return begin - allocation["address"], end - begin, itemsize * math.prod(shape)


__all__ = ["RACES", "SYNCS", "render"]
