"""The calls of the late schedule that do the work for which they wait, or that keep work for later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda.emulation.runtime.capture_calls import CaptureCalls
from tcuda.emulation.runtime.copy_calls import CopyCalls
from tcuda.emulation.runtime.device_calls import DeviceCalls
from tcuda.emulation.runtime.event_calls import EventCalls
from tcuda.emulation.runtime.graph_calls import GraphCalls
from tcuda.emulation.runtime.late_work import SYNCHRONIZE
from tcuda.emulation.runtime.launches import Launches
from tcuda.emulation.runtime.memory_calls import MemoryCalls
from tcuda.emulation.runtime.shared_events import SharedEvent
from tcuda.emulation.runtime.stream_calls import StreamCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcuda import _core
    from tcuda.emulation.runtime.late_work import LateWork
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.operations import Operations


class LateDeviceCalls(DeviceCalls):
    """The calls for devices.

    Args:
        machine: The state of the devices.
        work: Does the work.
    """

    def __init__(self, machine: Machine, work: LateWork) -> None:
        super().__init__(machine)
        self._late = work

    def deviceSynchronize(self) -> None:
        super().deviceSynchronize()
        with self._lock:
            self._late.wait(self._late.schedule.of_device(self._thread.device))


class LateMemoryCalls(MemoryCalls):
    """The calls for memory.

    Args:
        machine: The state of the devices.
        work: Does the work.
        operations: Adds operations to streams.
    """

    def __init__(self, machine: Machine, work: LateWork, operations: Operations) -> None:
        super().__init__(machine, work, operations)
        self._late = work

    def free(self, ptr: int) -> None:
        super().free(ptr)
        self._late.settle_all()

    def hostUnregister(self, ptr: int) -> None:
        super().hostUnregister(ptr)
        self._late.settle_all()

    def ipcCloseMemHandle(self, ptr: int) -> None:
        self._late.settle_all()
        super().ipcCloseMemHandle(ptr)


class LateCopyCalls(CopyCalls):
    """The calls that copy and set memory.

    Args:
        machine: The state of the devices.
        work: Does the work.
        operations: Adds operations to streams.
    """

    def __init__(self, machine: Machine, work: LateWork, operations: Operations) -> None:
        super().__init__(machine, operations)
        self._late = work

    def memcpy(self, dst: int, src: int, size: int, kind: int) -> None:
        super().memcpy(dst, src, size, kind)
        self._late.wait([self._streams.find(0, SYNCHRONIZE).last])


class LateStreamCalls(StreamCalls):
    """The calls for streams.

    Args:
        machine: The state of the devices.
        work: Does the work.
    """

    def __init__(self, machine: Machine, work: LateWork) -> None:
        super().__init__(machine)
        self._late = work

    def streamDestroy(self, stream: int) -> None:
        timeline = self._streams.created.get(stream)
        super().streamDestroy(stream)
        if timeline is not None:
            with self._lock:
                self._late.end(timeline)

    def streamQuery(self, stream: int) -> int:
        status = super().streamQuery(stream)
        if status == Status.SUCCESS:
            status = self._late.query(self._streams.find(stream, SYNCHRONIZE).last)
        return status

    def streamSynchronize(self, stream: int) -> None:
        super().streamSynchronize(stream)
        self._late.wait([self._streams.find(stream, SYNCHRONIZE).last])

    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        super().streamWaitEvent(stream, event, flags)
        with self._lock:
            timeline = self._streams.find(stream, SYNCHRONIZE)
            recorded = self._events.by_handle.get(event)
            if recorded is not None and timeline.capture is None:
                self._late.join(timeline, recorded.operation)


class LateLaunches(Launches):
    """The calls that launch kernels; the arguments are those of :class:`Launches`."""

    def prepareWork(self, work: _core.EmulatedWork, obstacles: Iterable[list[Any]]) -> None:
        """Do nothing: no work is done in the call that launches the work."""


class LateEventCalls(EventCalls):
    """The calls for events.

    Args:
        machine: The state of the devices.
        work: Does the work.
    """

    def __init__(self, machine: Machine, work: LateWork) -> None:
        super().__init__(machine)
        self._late = work

    def eventRecord(self, event: int, stream: int) -> None:
        super().eventRecord(event, stream)
        with self._lock:
            recorded, timeline = self._events.by_handle[event], self._streams.find(stream, SYNCHRONIZE)
            if timeline.capture is not None:
                recorded.operation = None
                return
            self._late.join(timeline)
            recorded.operation = timeline.last
        if isinstance(recorded, SharedEvent):  # no other process can do the work of this process
            self._late.settle([recorded.operation])

    def eventQuery(self, event: int) -> int:
        status = super().eventQuery(event)
        if status == Status.SUCCESS:
            status = self._late.query(self._events.by_handle[event].operation)
        return status

    def eventSynchronize(self, event: int) -> None:
        super().eventSynchronize(event)
        self._late.wait([self._events.by_handle[event].operation])

    def eventElapsedTime(self, start: int, end: int) -> float:
        elapsed = super().eventElapsedTime(start, end)
        self._late.wait([self._events.by_handle[event].operation for event in (start, end)])
        return elapsed


class LateCaptureCalls(CaptureCalls):
    """The calls for captures.

    Args:
        machine: The state of the devices.
        work: Does the work.
        operations: Adds operations to streams.
        graph_calls: Make an executable graph of what a capture has kept.
    """

    def __init__(self, machine: Machine, work: LateWork, operations: Operations, graph_calls: GraphCalls) -> None:
        super().__init__(machine, operations, graph_calls)
        self._late = work

    def defers(self, current_stream: Callable[[], Any]) -> bool:
        return self._late.is_late_here() or self.capturing(current_stream)


class LateGraphCalls(GraphCalls):
    """The calls for graphs.

    Args:
        machine: The state of the devices.
        work: Does the work.
    """

    def __init__(self, machine: Machine, work: LateWork) -> None:
        super().__init__(machine, work)
        self._late = work

    def prepareLaunch(self, graphExec: int, owner: object, prepare: Callable[[], object]) -> None:
        self._graphs.executables[graphExec].preparations[owner] = prepare

    def graphExecDestroy(self, graphExec: int) -> None:
        executable = self._graphs.executables.get(graphExec)
        super().graphExecDestroy(graphExec)
        if executable is not None:  # a launch may still read memory of the host, which the program may free now
            self._late.settle([executable.last])
