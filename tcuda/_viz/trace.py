"""Timelines in the Trace Event Format, which Perfetto and Chrome show."""

from __future__ import annotations

import itertools
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tcuda._runtime.protocol import TracedWork

_HOST = 0
"""The process of the file that stands for the host. Device 0 is process 1."""

_LANES = 1000
"""The rows of a stream have numbers from a multiple of this number on."""


class Span(NamedTuple):
    """A range of a thread of the host; a mark ends where it begins.

    Attributes:
        name: The text of the range.
        thread: The number of the thread.
        start: The beginning in nanoseconds.
        end: The end in nanoseconds.
    """

    name: str
    thread: int
    start: int
    end: int


class Memory(NamedTuple):
    """The memory of a device at a time.

    Attributes:
        device: The device.
        time: The time in nanoseconds.
        requested: The bytes of arrays, until the end of their last use.
        reserved: The bytes of all segments.
    """

    device: int
    time: int
    requested: int
    reserved: int


def document(
    devices: Sequence[str], work: Sequence[TracedWork], spans: Sequence[Span], memory: Sequence[Memory]
) -> bytes:
    """Return a timeline as JSON.

    Args:
        devices: The names of the devices.
        work: The work of the streams, and the waits of the host.
        spans: The ranges and marks of the host.
        memory: The memory of the devices, in the order of time for each device.
    """
    events = [*_names(devices), *_streams(work), *_host(work, spans), *_memory(memory)]
    events.sort(key=lambda event: event.get("ts", 0))  # the sort is stable, and names come first
    content = {
        "displayTimeUnit": "ns",
        "otherData": {"producer": f"tcuda {__version__}"},
        "traceEvents": events,
    }
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def _names(devices: Sequence[str]) -> Iterator[dict[str, Any]]:
    yield _name("process_name", _HOST, 0, f"host (process {os.getpid()})")
    for device, name in enumerate(devices):
        yield _name("process_name", device + 1, 0, f"cuda:{device} {name}")


def _streams(work: Sequence[TracedWork]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the streams. Work of one stream that overlaps, as that of a graph does, has several rows."""
    order = sorted((each for each in work if each.device >= 0), key=lambda each: (each.device, each.stream, each.start))
    for row, ((device, stream), group) in enumerate(itertools.groupby(order, lambda each: each[2:4])):
        ends: list[int] = []
        for each in group:
            lane = next((lane for lane, end in enumerate(ends) if end <= each.start), len(ends))
            if lane == len(ends):
                ends.append(0)
                name = f"stream {stream:#x}" if stream else "default stream"
                yield _name("thread_name", device + 1, row * _LANES + lane, f"{name} ({lane + 1})" if lane else name)
            ends[lane] = each.end
            arguments = {"bytes": each.nbytes} if each.nbytes else {}
            yield _span(each.kind, each.name, device + 1, row * _LANES + lane, each.start, each.end, arguments)


def _host(work: Sequence[TracedWork], spans: Sequence[Span]) -> Iterator[dict[str, Any]]:
    waits = [each for each in work if each.device < 0]
    for thread in sorted({each.stream for each in waits} | {each.thread for each in spans}):
        yield _name("thread_name", _HOST, thread, f"thread {thread}")
    for wait in waits:
        yield _span("wait", wait.name, _HOST, wait.stream, wait.start, wait.end)
    # A longer span comes first, so that viewers nest spans that begin together.
    for name, thread, start, end in sorted(spans, key=lambda span: span.start - span.end):
        if end > start:
            yield _span("range", name, _HOST, thread, start, end)
        else:
            mark = {"ph": "i", "s": "t", "cat": "mark", "name": name, "pid": _HOST, "tid": thread, "ts": start / 1000}
            yield mark


def _memory(memory: Iterable[Memory]) -> Iterator[dict[str, Any]]:
    for device, time, requested, reserved in memory:
        values = {"requested": requested, "reserved": reserved}
        yield {"ph": "C", "name": "memory", "pid": device + 1, "ts": time / 1000, "args": values}


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _span(
    kind: str, name: str, process: int, thread: int, start: int, end: int, arguments: dict[str, Any] | None = None
) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "X", "cat": kind, "name": name, "pid": process, "tid": thread}
    event.update(ts=start / 1000, dur=(end - start) / 1000)
    if arguments:
        event["args"] = arguments
    return event
