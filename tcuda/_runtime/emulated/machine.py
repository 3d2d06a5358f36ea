"""The emulated devices with their clock, streams and events: the state that the entries of the protocol work on."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from tcuda._errors import AcceleratorError
from tcuda._runtime.emulated import settings
from tcuda._runtime.emulated.clock import CALL, Clock
from tcuda._runtime.emulated.device import EmulatedDevice
from tcuda._runtime.emulated.memory import Memory
from tcuda._runtime.emulated.thread import Thread
from tcuda._runtime.emulated.timeline import Mark, Timeline
from tcuda._runtime.protocol import STREAM_DEFAULT, STREAM_LEGACY, STREAM_PER_THREAD
from tcuda._status import Status

if TYPE_CHECKING:
    from tcuda._runtime.emulated.capture import Capture
    from tcuda._runtime.emulated.graph import Executable, Graph, Node

# Handles are never used again, and look like addresses so that nobody takes them for small integers.
_FIRST_HANDLE = 0x7C0DA000
_HANDLE_STEP = 0x10


class Machine:
    """``devices`` emulated devices with ``memory`` bytes each, and one clock."""

    def __init__(self, devices: int, memory: int) -> None:
        settings.check(devices, memory)
        self.clock = Clock()
        self.devices = [EmulatedDevice(index, memory) for index in range(devices)]
        self._lock = threading.RLock()
        self._thread = Thread(devices)
        self._memory = Memory(self.devices)
        self._streams: dict[int, Timeline] = {}
        self._destroyed: dict[tuple[int, int], Timeline] = {}  # by device and flags: their work goes on
        self._events: dict[int, Mark] = {}
        self._captures: list[Capture] = []
        self._capture_numbers = itertools.count(1)
        self._graphs: dict[int, Graph] = {}
        self._executables: dict[int, Executable] = {}
        self._per_thread: dict[tuple[int, int], Timeline] = {}
        self._next_handle = _FIRST_HANDLE

    # What handles stand for

    def _device(self, index: int, call: str) -> EmulatedDevice:
        if not 0 <= index < len(self.devices):
            raise AcceleratorError(Status.INVALID_DEVICE, call)
        return self.devices[index]

    def _stream(self, handle: int, call: str, device: int | None = None) -> Timeline:
        if device is None:
            device = self._thread.device
        if handle in (0, STREAM_LEGACY):
            return self.devices[device].default
        if handle == STREAM_PER_THREAD:
            key = (threading.get_ident(), device)
            return self._per_thread.setdefault(key, Timeline(STREAM_PER_THREAD, device, STREAM_DEFAULT))
        timeline = self._streams.get(handle)
        if timeline is None:
            raise AcceleratorError(Status.INVALID_RESOURCE_HANDLE, call)
        return timeline

    def _event(self, handle: int, call: str) -> Mark:
        mark = self._events.get(handle)
        if mark is None:
            destroyed = _FIRST_HANDLE <= handle < self._next_handle
            raise AcceleratorError(Status.CONTEXT_IS_DESTROYED if destroyed else Status.INVALID_RESOURCE_HANDLE, call)
        return mark

    def _on(self, device: int) -> list[Timeline]:
        """Return every stream of ``device``, and what stands for those that are destroyed."""
        streams = (*self._streams.values(), *self._per_thread.values(), *self._destroyed.values())
        return [self.devices[device].default, *(stream for stream in streams if stream.device == device)]

    def _new_handle(self) -> int:
        with self._lock:
            self._next_handle += _HANDLE_STEP
            return self._next_handle - _HANDLE_STEP

    # Operations

    def _start(self, timeline: Timeline, call: str) -> int:
        """Return when an operation that is added to ``timeline`` now may start; it is not captured."""
        self._forbid_implicit(timeline, call)
        start = max(self.clock.advance(CALL), timeline.ready)
        default = self.devices[timeline.device].default
        if timeline is default:
            return max(start, *(other.ready for other in self._on(timeline.device) if other.blocking))
        return max(start, default.ready) if timeline.blocking else start

    def _occupy(self, timeline: Timeline, start: int, end: int) -> int:
        """Let ``timeline`` be busy until ``end``, with what started at ``start``; return ``end``."""
        timeline.ready = end
        if end > start:
            self.devices[timeline.device].activity.append((start, end))
        return end

    def _enqueue(self, timeline: Timeline, node: Node, call: str) -> int:
        """Add an operation to ``timeline`` and return when it is complete."""
        if timeline.capture is not None:
            if not timeline.capture.valid:
                raise AcceleratorError(Status.STREAM_CAPTURE_INVALIDATED, call)
            timeline.capture.add(timeline.handle, node)
            return self.clock.now()
        start = self._start(timeline, call)
        return self._occupy(timeline, start, node.complete(start))

    def _run(self, timeline: Timeline, node: Node, call: str) -> int:
        """Add an operation to ``timeline`` and do its work, unless it is captured; return when it is complete."""
        end = self._enqueue(timeline, node, call)
        if timeline.capture is None:
            node.work()
        return end

    # What captures forbid

    def _implicit_capture(self, timeline: Timeline) -> Capture | None:
        """Return the capture of a stream that ``timeline``, if it is a default stream, would have to wait for."""
        if not self._captures or timeline is not self.devices[timeline.device].default:
            return None
        return next((other.capture for other in self._on(timeline.device) if other.blocking and other.capture), None)

    def _reach(self, stream: int, call: str) -> Timeline:
        """Return the stream for a call that looks at how far it has come, which captures forbid."""
        timeline = self._stream(stream, call)
        if timeline.capture is not None:
            raise self._spoil(timeline.capture, call)
        self._forbid_implicit(timeline, call)
        self._forbid_unsafe(call)
        return timeline

    def _forbid_implicit(self, timeline: Timeline, call: str) -> None:
        capture = self._implicit_capture(timeline)
        if capture is not None:
            raise self._spoil(capture, call, Status.STREAM_CAPTURE_IMPLICIT)

    def _forbid_unsafe(self, call: str) -> None:
        for capture in self._captures:
            if capture.forbids_unsafe_calls():
                raise self._spoil(capture, call)

    def _spoil(
        self, capture: Capture, call: str, status: Status = Status.STREAM_CAPTURE_UNSUPPORTED
    ) -> AcceleratorError:
        capture.valid = False
        return AcceleratorError(status, call)
