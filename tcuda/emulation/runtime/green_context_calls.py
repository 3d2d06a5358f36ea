"""The calls for green contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.runtime.green_contexts import WORK_QUEUES, GreenContexts

if TYPE_CHECKING:
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.stream_calls import StreamCalls


class GreenContextCalls:
    """The calls for green contexts.

    Args:
        machine: The state of the devices.
        stream_calls: Create and destroy streams.
    """

    def __init__(self, machine: Machine, stream_calls: StreamCalls) -> None:
        self._lock = machine.lock
        self._device = machine.device
        self._streams = machine.streams
        self._green_contexts = GreenContexts(machine.handles)
        self._stream_calls = stream_calls

    def deviceGetWorkQueueConcurrency(self, device: int) -> int:
        self._device(device, ("cuDeviceGetDevResource({})", device))
        return WORK_QUEUES

    def greenCtxCreate(self, device: int, multiprocessors: int, scope: int, limit: int) -> tuple[int, int]:
        call = "cuGreenCtxCreate({}, {}, {}, {})", device, multiprocessors, scope, limit
        self._device(device, call)
        with self._lock:
            return self._green_contexts.create(device, multiprocessors, scope, limit, call)

    def greenCtxDestroy(self, context: int) -> None:
        with self._lock:
            streams = self._green_contexts.remove(context, ("cuGreenCtxDestroy({:#x})", context))
        for stream in streams:
            if stream in self._streams.created:
                self._stream_calls.streamDestroy(stream)

    def greenCtxStreamCreate(self, context: int, flags: int, priority: int) -> int:
        call = "cuGreenCtxStreamCreate({:#x}, {}, {})", context, flags, priority
        with self._lock:
            found = self._green_contexts.of_stream(context, flags, call)
        return self._stream_calls.create(found.device, flags, priority, found.multiprocessors, found.streams)
