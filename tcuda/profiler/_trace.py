"""Traces: the work of streams, the waits, the ranges and the memory of a part of a program, in a file."""

from __future__ import annotations

import os
import threading
import time
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcuda._base.errors import AcceleratorError
from tcuda._base.files import require_writable, write_file
from tcuda._base.warnings import stacklevel
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
    from collections.abc import Iterator, Mapping, Sequence

    from tcuda._runtime.protocol import Trace
    from tcuda.nvtx import Listener

_MOST_EVENTS = 1_000_000
"""The events of memory that a trace keeps. Newer events replace the oldest events."""

_REQUESTED = {"alloc": 1, "free_completed": -1}  # as requested_bytes, with which the sum begins
_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
"""The events that change the sums of memory, and the sign of each."""

_TOO_LONG = "A trace keeps {:,} events of each device, and newer events replace the oldest ones: trace a shorter part."
_KEPT_TOO_LITTLE = (
    "The program records the history of memory itself, by _record_memory_history(), and this history has not kept "
    'them. Record the history during the whole trace, with enabled="all", a larger max_entries and fewer skip_actions.'
)

_in_progress = threading.Lock()


@contextmanager
def trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context manager that writes a timeline of its block: streams, kernels, copies, waits, ranges and memory.

    The file is JSON in the Trace Event Format, which https://ui.perfetto.dev and ``chrome://tracing`` show. Each device
    has a row for each stream, the bytes of its arrays and the bytes of its segments. An array counts until the end of
    its last use on any stream, as in ``requested_bytes`` of :func:`tcuda.memory_stats`. The host has a row for each
    thread, with the waits of the host and the ranges and marks of :mod:`tcuda.nvtx`.

    On emulated devices, all times are those of the [emulated clock](../emulation.md#time), and are the same at every
    run. On GPUs, NVIDIA's profiling library CUPTI records the times: ``pip install 'tcuda[trace13]'``, or
    ``'tcuda[trace12]'`` for CUDA 12, installs its Python package. The end of the block waits for all devices in use
    there. The file is written also if the block or the wait raises an error, and has what was recorded until then.

    If the program records the history of memory itself, by :func:`tcuda.memory._record_memory_history`, the trace has
    the events of that history only. A ``RuntimeWarning`` says if events are missing.

    Args:
        path: The file to write. The call replaces an existing file.

    Raises:
        AcceleratorError: Work of the block failed, and the wait at the end was the first call to hear of that.
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
            if record.lack:
                warnings.warn(record.lack, RuntimeWarning, stacklevel=stacklevel("contextlib"))
        if record.failure is not None:  # an error of the block is raised instead
            raise record.failure


class LaterRecord:
    """A record of a trace that begins when tcuda is initialised in this process. The record has earlier ranges, too.

    Attributes:
        lack: What the trace lacks, in words; an empty text before the end, and if the trace has everything.
        failure: The error of the wait at the end; None before the end, and if there was no error.
    """

    def __init__(self) -> None:
        self.lack = ""
        self.failure: AcceleratorError | None = None
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
            content = self._record.end()
            self.lack, self.failure = self._record.lack, self._record.failure
            return content
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

    Attributes:
        lack: What the trace lacks, in words; an empty text before the end, and if the trace has everything.
        failure: The error of the wait at the end; None before the end, and if there was no error.
    """

    def __init__(self, ranges: TracedRanges) -> None:
        self.lack = ""
        self.failure: AcceleratorError | None = None
        self._ranges = ranges
        with ExitStack() as undo:
            undo.callback(self._hear_no_ranges)
            # Now, because after some errors no call of the driver succeeds.
            self._names = [get_device_name(device) for device in range(device_count())]
            self._trace = runtime().beginTrace()
            undo.callback(self._trace.end)
            self._memory = _History(self._trace)
            undo.callback(self._memory.stop)
            ranges.follow(self._trace)
            undo.pop_all()

    def _hear_no_ranges(self) -> None:
        change_listener(lambda _: self._ranges.profiler)

    def end(self) -> bytes:
        """End the record, and return the content of the file."""
        self._hear_no_ranges()
        memory: list[Memory] = []
        try:
            memory = self._memory.end()
            self._trace.wait(sorted({current_device(), *(each.device for each in memory if each.reserved)}))
        except AcceleratorError as error:
            self.failure = error
        finally:
            work = self._trace.end()
        self.lack = self._memory.lack
        return document(self._names, work, self._ranges.found, memory)


class _History:
    """The memory of all devices, from now on. A history that the program records goes on with its settings.

    Args:
        trace: The trace, whose clock gives the times.

    Attributes:
        lack: Which events are missing, in words; an empty text before the end, and if no events are missing.
    """

    def __init__(self, trace: Trace) -> None:
        self.lack = ""
        self._trace = trace
        own = ledger()
        self._requests = history_requests()
        self._is_own = not own.records_history()
        try:
            if self._is_own:
                own.record_history(Stacks.NONE, _MOST_EVENTS, 0, True)
            self._begin = time.time_ns() // 1000
            moment = trace.now()
            devices = range(device_count())
            # After the begin: so no event counts here that is not in the history.
            self._counts = [_counts(each) for each in devices]
            self._found = [Memory(each, moment, _requested(each), memory_reserved(each)) for each in devices]
        except BaseException:
            self.stop()
            raise

    def end(self) -> list[Memory]:
        """End the record, and return the memory of each device at the beginning and after each event."""
        counts = [_counts(each) for each in range(device_count())]
        try:
            histories = ledger().snapshot(None, True)[1]
        finally:
            is_own = self.stop()
        found, missing = self._found, []
        for last, history, before, after in zip(found.copy(), histories, self._counts, counts, strict=True):
            events = [event for event in history if event["time_us"] >= self._begin]
            if any(have < end - begin for have, begin, end in zip(_counted(events), before, after, strict=True)):
                missing.append(f"cuda:{last.device}")
            moments = self._trace.moments([event["time_us"] * 1000 for event in events])
            for event, moment in zip(events, moments, strict=True):
                size, action = event["size"], event["action"]
                requested = last.requested + size * _REQUESTED.get(action, 0)
                last = Memory(last.device, moment, requested, last.reserved + size * _RESERVED.get(action, 0))
                found.append(last)
        if missing:
            why = _TOO_LONG.format(_MOST_EVENTS) if is_own else _KEPT_TOO_LITTLE
            self.lack = f"The trace lacks events of the memory of {', '.join(missing)}, so its bytes are wrong. {why}"
        return found

    def stop(self) -> bool:
        """End the history, unless the program wants one; return whether the history was that of the trace alone."""
        is_own = self._is_own and history_requests() == self._requests
        if is_own:
            ledger().stop_history()
        return is_own


def _counts(device: int) -> tuple[int, ...]:
    """Return the figures of a device that only grow, and that :func:`_counted` counts in a history."""
    stats = memory_stats(device)
    return tuple(
        stats[name]
        for name in (
            "active.all.allocated",
            "active.all.freed",
            "reserved_bytes.all.allocated",
            "reserved_bytes.all.freed",
        )
    )


def _counted(events: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return how much the events of a history add to the figures of :func:`_counts`."""
    signs = [_REQUESTED.get(event["action"], 0) for event in events]
    changes = [event["size"] * _RESERVED.get(event["action"], 0) for event in events]
    return (
        signs.count(1),
        signs.count(-1),
        sum(change for change in changes if change > 0),
        -sum(change for change in changes if change < 0),
    )


def _requested(device: int) -> int:
    """Return the bytes of all arrays in use, not rounded up, because the events of the history have such bytes."""
    return int(memory_stats(device)["requested_bytes.all.current"])
