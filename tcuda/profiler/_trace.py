"""Traces: the work of streams, the waits, the ranges and the memory of a part of a program, in a file."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.files import require_writable, write_file
from tcuda._core import Stacks
from tcuda._device._current import current_device
from tcuda._device._queries import get_device_name
from tcuda._process.device_rules import device_count
from tcuda._process.lazy import call_when_ready, init
from tcuda._process.ledger import ledger
from tcuda._runtime import runtime
from tcuda._viz.trace import Memory, document
from tcuda.memory import memory_reserved, memory_stats
from tcuda.memory._snapshots import history_requests
from tcuda.nvtx import change_listener
from tcuda.profiler._ranges import TracedRanges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda._runtime.protocol import Trace
    from tcuda.nvtx import Listener

_MOST_EVENTS = 1_000_000
"""The events of memory that a trace keeps. Newer events replace the oldest events."""

_REQUESTED = {"alloc": 1, "free_requested": -1}
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
"""The events that change the sums of memory, and the sign of each."""

_in_progress = threading.Lock()


@contextmanager
def trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context manager that writes a timeline of its block: streams, kernels, copies, waits, ranges and memory.

    The file is JSON in the Trace Event Format, which https://ui.perfetto.dev and ``chrome://tracing`` show. Each device
    has a row for each stream, and the bytes of its live arrays and of its segments. The host has a row for each thread,
    with the waits of the host and the ranges and marks of :mod:`tcuda.nvtx`.

    On emulated devices, all times are those of the [emulated clock](../emulation.md#time), and are the same at every
    run. On GPUs, NVIDIA's profiling library CUPTI records the times: ``pip install 'tcuda[trace13]'``, or
    ``'tcuda[trace12]'`` for CUDA 12, installs its Python package. The end of the block waits for all devices in use
    there. The file is written also if the block raises an error.

    Args:
        path: The file to write. The call replaces an existing file.

    Raises:
        OSError: The file cannot be written.
        RuntimeError: Another trace is in progress, or the process has no device, or the devices are GPUs, and the
            package ``cupti-python`` is not installed, or cannot record.

    Example:
        >>> import json, pathlib, tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".json") as file:
        ...     with tcuda.profiler.trace(file.name):
        ...         with tcuda.nvtx.range("load"):
        ...             x = xp.ones(1000)
        ...         y = x * 2
        ...     events = json.loads(pathlib.Path(file.name).read_text())["traceEvents"]
        >>> "load" in {event["name"] for event in events}
        True
    """
    file = Path(path)
    require_writable(file)
    init()
    with _alone():
        record = _Record(_heard_ranges())
        try:
            yield
        finally:
            write_file(file, record.end())


class LaterRecord:
    """A record of a trace that begins when tcuda is initialised in this process. The record has earlier ranges, too."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._ranges = _heard_ranges()
        self._record: _Record | None = None

    def begin(self) -> None:
        """Begin the record, unless this process is a fork of the process of the trace."""
        if os.getpid() == self._process and self._record is None:
            self._record = _Record(self._ranges)

    def end(self) -> bytes | None:
        """End the record, and return the content of the file; None if the record has not begun."""
        self._process = 0
        if self._record is not None:
            return self._record.end()
        change_listener(lambda _: self._ranges.profiler)
        return None


@contextmanager
def trace_from_initialization() -> Iterator[LaterRecord]:
    """Context manager for a trace of a program that may still choose its devices.

    Raises:
        RuntimeError: Another trace is in progress.
    """
    with _alone():
        record = LaterRecord()
        call_when_ready(record.begin)
        yield record


@contextmanager
def _alone() -> Iterator[None]:
    """Refuse a second trace in the block.

    Raises:
        RuntimeError: Another trace is in progress.
    """
    if not _in_progress.acquire(blocking=False):
        raise RuntimeError("A trace is being made already, and traces cannot be nested. End the other trace first.")
    try:
        yield
    finally:
        _in_progress.release()


def _heard_ranges() -> TracedRanges:
    """Return the ranges and marks that are heard from now on."""
    heard: list[TracedRanges] = []

    def listen(profiler: Listener) -> TracedRanges:
        heard.append(TracedRanges(profiler))
        return heard[0]

    change_listener(listen)
    return heard[0]


class _Record:
    """All that a trace records, from now on.

    Args:
        ranges: The ranges and marks, also those from before.
    """

    def __init__(self, ranges: TracedRanges) -> None:
        try:
            self._trace = runtime().beginTrace()
        except BaseException:
            change_listener(lambda _: ranges.profiler)
            raise
        self._memory = _History(self._trace)
        self._ranges = ranges
        ranges.follow(self._trace)

    def end(self) -> bytes:
        """End the record, and return the content of the file."""
        change_listener(lambda _: self._ranges.profiler)
        memory = self._memory.end()
        used = {current_device(), *(each.device for each in memory if each.reserved)}
        work = self._trace.end(sorted(used))
        names = [get_device_name(device) for device in range(device_count())]
        return document(names, work, self._ranges.found, memory)


class _History:
    """The memory of all devices, from now on. A history that the program records goes on with its settings.

    Args:
        trace: The trace, whose clock gives the times.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        own = ledger()
        self._requests = history_requests()
        self._is_own = not own.records_history()
        if self._is_own:
            own.record_history(Stacks.NONE, _MOST_EVENTS, 0, True)
        self._begin = time.time_ns() // 1000
        moment = trace.now()
        devices = range(device_count())
        self._found = [Memory(each, moment, _requested(each), memory_reserved(each)) for each in devices]

    def end(self) -> list[Memory]:
        """End the record, and return the memory of each device at the beginning and after each event."""
        own = ledger()
        histories = own.snapshot(None, True)[1]
        if self._is_own and history_requests() == self._requests:
            own.stop_history()
        found = self._found
        for last, history in zip(found.copy(), histories, strict=True):
            events = [event for event in history if event["time_us"] >= self._begin]
            moments = self._trace.moments([event["time_us"] * 1000 for event in events])
            for event, moment in zip(events, moments, strict=True):
                size, action = event["size"], event["action"]
                requested = last.requested + size * _REQUESTED.get(action, 0)
                last = Memory(last.device, moment, requested, last.reserved + size * _RESERVED.get(action, 0))
                found.append(last)
        return found


def _requested(device: int) -> int:
    """Return the bytes of all live arrays, not rounded up, because the events of the history have such bytes."""
    return int(memory_stats(device)["requested_bytes.all.current"])
