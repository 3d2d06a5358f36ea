"""The calls for events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import (
    EVENT_BLOCKING_SYNC,
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    EVENT_RECORD_EXTERNAL,
)
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.events import ExternalRecord
from tcuda.emulation.runtime.shared_events import SharedEvent, SharedEvents

if TYPE_CHECKING:
    from tcuda.emulation.runtime.machine import Machine


class EventCalls:
    """The calls for events.

    Args:
        machine: The state of the devices.
    """

    def __init__(self, machine: Machine) -> None:
        self._lock = machine.lock
        self._clock = machine.clock
        self._races = machine.races
        self._thread = machine.thread
        self._capturing = machine.captures.in_progress
        self._streams = machine.streams
        self._created = machine.streams.created
        self._times = machine.streams.times
        self._events = machine.events
        self._by_handle = machine.events.by_handle
        self._shared_events = SharedEvents(machine.handles, machine.clock)

    def eventCreateWithFlags(self, flags: int) -> int:
        known = EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING | EVENT_INTERPROCESS
        timed_interprocess = flags & EVENT_INTERPROCESS and not flags & EVENT_DISABLE_TIMING
        if flags & ~known or timed_interprocess:
            raise failure(Status.INVALID_VALUE, ("cudaEventCreateWithFlags({})", flags))
        with self._lock:
            if not flags & EVENT_INTERPROCESS:
                return self._events.create(self._thread.device, flags)
            event = self._shared_events.create(self._thread.device, flags)
            self._by_handle[event.handle] = event
            return event.handle

    def eventDestroy(self, event: int) -> None:
        with self._lock:
            destroyed = self._events.find(event, ("cudaEventDestroy({:#x})", event))
            del self._by_handle[event]
            self._races.watcher.event_destroyed(destroyed)
            if destroyed.interprocess:
                assert isinstance(destroyed, SharedEvent)
                self._shared_events.give_back(destroyed)

    def eventRecord(self, event: int, stream: int) -> None:
        call = "cudaEventRecord({:#x}, {:#x})", event, stream
        with self._lock:
            recorded = self._by_handle.get(event) or self._events.refuse(event, call)
            timeline = self._created.get(stream) or self._streams.find(stream, call)
            if recorded.device != timeline.device:
                raise failure(Status.INVALID_RESOURCE_HANDLE, call)
            capture = timeline.capture
            if capture is not None:
                recorded.time, recorded.capture = None, capture
                recorded.places = capture.seen_by(timeline.handle)
                return
            if self._capturing:
                self._streams.forbid_implicit(timeline, call)
            recorded.time = self._times.extend(timeline, self._times.start(timeline))
            recorded.capture = None
            self._races.watcher.recorded(recorded, timeline)

    def eventRecordWithFlags(self, event: int, stream: int, flags: int) -> None:
        call = "cudaEventRecordWithFlags({:#x}, {:#x}, {})", event, stream, flags
        if flags == 0:
            try:
                self.eventRecord(event, stream)
            except AcceleratorError as error:
                raise failure(error.error_code, call) from None
            return
        if flags != EVENT_RECORD_EXTERNAL:
            raise failure(Status.INVALID_VALUE, call)
        with self._lock:
            timeline = self._streams.find(stream, call)
            if timeline.capture is None:
                raise failure(Status.ILLEGAL_STATE, call)
            recorded = self._events.find(event, call)
            if recorded.device != timeline.device:
                raise failure(Status.INVALID_RESOURCE_HANDLE, call)
            timeline.capture.add(timeline.handle, ExternalRecord(recorded))

    def eventQuery(self, event: int) -> int:
        try:
            with self._lock:
                recorded = self._events.observe(event, ("cudaEventQuery({:#x})", event))
                if (recorded.time or 0) > self._clock._tick():
                    return Status.NOT_READY
                self._races.watcher.completed(recorded)
                return Status.SUCCESS
        except AcceleratorError as error:
            return error.error_code

    def eventSynchronize(self, event: int) -> None:
        with self._lock:
            recorded = self._events.observe(event, ("cudaEventSynchronize({:#x})", event))
            if (recorded.time or 0) > self._clock._now:
                self._clock.wait_until(recorded.time or 0)
            self._races.watcher.completed(recorded)

    def eventElapsedTime(self, start: int, end: int) -> float:
        call = "cudaEventElapsedTime({:#x}, {:#x})", start, end
        with self._lock:
            first, last = self._events.find(start, call), self._events.find(end, call)
            if first.capture or last.capture:
                raise failure(Status.CAPTURED_EVENT, call)
            if not (first.timed and last.timed) or first.device != last.device:
                raise failure(Status.INVALID_RESOURCE_HANDLE, call)
            if first.time is None or last.time is None:
                raise failure(Status.INVALID_RESOURCE_HANDLE, call)
            if max(first.time, last.time) > self._clock.now():
                raise failure(Status.NOT_READY, call)
            # the host knows now that both events are complete
            self._races.watcher.completed(first)
            self._races.watcher.completed(last)
            return (last.time - first.time) / 1e6

    def ipcGetEventHandle(self, event: int) -> bytes:
        call = "cudaIpcGetEventHandle({:#x})", event
        with self._lock:
            shared = self._events.find(event, call)
            if not (isinstance(shared, SharedEvent) and shared.interprocess):
                raise failure(Status.INVALID_RESOURCE_HANDLE, call)
            return self._shared_events.handle_of(shared, call)

    def ipcOpenEventHandle(self, handle: bytes) -> int:
        call = ("cudaIpcOpenEventHandle()",)
        with self._lock:
            event = self._shared_events.open(handle, self._thread.device, call)
            self._by_handle[event.handle] = event
            return event.handle
