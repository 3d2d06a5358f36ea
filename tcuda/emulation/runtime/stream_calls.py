"""The calls for streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import EVENT_WAIT_EXTERNAL, STREAM_DEFAULT, STREAM_NON_BLOCKING, STREAM_PER_THREAD
from tcuda.emulation.runtime import costs
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.devices import STREAM_PRIORITY_RANGE
from tcuda.emulation.runtime.events import ExternalWait
from tcuda.emulation.runtime.timeline import Timeline

if TYPE_CHECKING:
    from tcuda import _core
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.captures import Capture
    from tcuda.emulation.runtime.events import Event
    from tcuda.emulation.runtime.machine import Machine


class StreamCalls:
    """The calls for streams.

    Args:
        machine: The state of the devices.
    """

    def __init__(self, machine: Machine) -> None:
        self._lock = machine.lock
        self._clock = machine.clock
        self._races = machine.races
        self._thread = machine.thread
        self._handles = machine.handles
        self._streams = machine.streams
        self._created = machine.streams.created
        self._events = machine.events
        self._by_handle = machine.events.by_handle
        self._ledger: _core.Ledger | None = None

    def streamCreateWithPriority(self, flags: int, priority: int) -> int:
        if flags not in (STREAM_DEFAULT, STREAM_NON_BLOCKING):
            raise failure(Status.INVALID_VALUE, ("cudaStreamCreateWithPriority({}, {})", flags, priority))
        return self.create(self._thread.device, flags, priority, costs.MULTIPROCESSORS, [])

    def create(self, device: int, flags: int, priority: int, multiprocessors: int, streams: list[int]) -> int:
        """Create a stream, and add its handle to ``streams`` before the stream exists."""
        least, greatest = STREAM_PRIORITY_RANGE
        with self._lock:
            handle = self._handles.new()
            streams.append(handle)  # first, because a signal handler may raise
            level = min(least, max(greatest, priority))
            timeline = Timeline(handle, device, flags, level, multiprocessors)
            self._streams.add(timeline)
            self._races.watcher.created(timeline)
        if self._ledger is not None:
            self._ledger.stream_created(device, handle)
        return handle

    def streamDestroy(self, stream: int) -> None:
        call = "cudaStreamDestroy({:#x})", stream
        with self._lock:
            if 0 <= stream <= STREAM_PER_THREAD:
                raise failure(Status.INVALID_RESOURCE_HANDLE, call)
            timeline = self._streams.find(stream, call)
            if timeline.capture is not None:
                raise timeline.capture.invalidate(call)
        if self._ledger is not None:
            self._ledger.stream_about_to_be_destroyed(timeline.device, stream)
        with self._lock:
            self._streams.remove(timeline)
            self._races.watcher.destroyed(timeline)

    def streamGetFlags(self, stream: int) -> int:
        return self._streams.find(stream, ("cudaStreamGetFlags({:#x})", stream)).flags

    def streamGetPriority(self, stream: int) -> int:
        return self._streams.find(stream, ("cudaStreamGetPriority({:#x})", stream)).priority

    def streamQuery(self, stream: int) -> int:
        try:
            with self._lock:
                timeline = self._streams.observe(stream, ("cudaStreamQuery({:#x})", stream))
                if timeline.ready > self._clock._tick():
                    return Status.NOT_READY
                self._races.watcher.finished(timeline)
                return Status.SUCCESS
        except AcceleratorError as error:
            return error.error_code

    def streamSynchronize(self, stream: int) -> None:
        with self._lock:
            timeline = self._streams.observe(stream, ("cudaStreamSynchronize({:#x})", stream))
            if timeline.ready > self._clock._now:
                self._clock.wait_until(timeline.ready)
            self._races.watcher.finished(timeline)

    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        call = "cudaStreamWaitEvent({:#x}, {:#x}, {})", stream, event, flags
        if flags not in (0, EVENT_WAIT_EXTERNAL):
            raise failure(Status.INVALID_VALUE, call)
        with self._lock:
            timeline = self._created.get(stream) or self._streams.find(stream, call)
            recorded = self._by_handle.get(event) or self._events.refuse(event, call)
            if recorded.capture is not None:
                self._wait_in_capture(timeline, recorded, recorded.capture, call)
            elif timeline.capture is not None and flags == EVENT_WAIT_EXTERNAL:
                timeline.capture.add(timeline.handle, ExternalWait(recorded))
            elif recorded.time is not None:
                if timeline.capture is not None:
                    raise timeline.capture.invalidate(call, Status.STREAM_CAPTURE_ISOLATION)
                if self._races.trace is not None:
                    self._races.trace.stream_waits(timeline, recorded.time)
                self._streams.times.extend(timeline, recorded.time)
                self._races.watcher.waited(recorded, timeline)

    def _wait_in_capture(self, timeline: Timeline, event: Event, capture: Capture, call: Call) -> None:
        if not capture.active:
            raise failure(Status.INVALID_VALUE, call)
        if timeline.handle == 0:
            raise capture.invalidate(call, Status.STREAM_CAPTURE_IMPLICIT)
        if timeline.capture not in (None, capture):
            timeline.capture.valid = False
            raise capture.invalidate(call, Status.STREAM_CAPTURE_MERGE)
        # The capture knows the stream first, so that its end finds the stream after an exception of a signal handler.
        capture.wait(timeline.handle, event.places)
        timeline.capture = capture

    def announceStreams(self, ledger: _core.Ledger) -> None:
        """Tell ``ledger`` of every stream that exists, and later of every stream that is created or destroyed."""
        self._ledger = ledger
        for handle, timeline in dict(self._streams.created).items():
            ledger.stream_created(timeline.device, handle)
