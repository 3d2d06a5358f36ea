"""The protocol ``Runtime`` on emulated devices.

An operation runs at once on the host, which is a legal order of any correctly synchronised program. The operation is
*complete* at a time of the emulated clock; queries, synchronisation and events go by that time. On a stream that
captures, the operation is kept instead, and runs when the graph is launched. Calls that CUDA refuses are refused with
the status that CUDA gives on an H200.

Each family of calls is an object (``parts.py``). The families share the state of the devices (``machine.py``). A call
finds the objects of the handles, refuses what CUDA refuses, does its work, and reports to the watcher, in this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import _core
from tcuda.emulation.runtime.machine import Machine
from tcuda.emulation.runtime.nvml import EmulatedNvml
from tcuda.emulation.runtime.parts import Parts
from tcuda.emulation.runtime.trace import EmulatedTrace
from tcuda.emulation.runtime.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence


class EmulatedRuntime:
    """Emulated devices with one clock.

    The calls are those of the families, without a frame in between.

    Args:
        devices: The number of devices of the machine.
        memory: The bytes of memory of each device.
        visible: The devices that the process sees, in their order for the process; all devices if None.

    Attributes:
        races: The watch of a race detector. ``races.detector`` is None while no detector watches.
        contents: Knows which bytes no work has written, if the user wants the check of them.
        clock: The clock.
        devices: The devices that the process sees.
        thread: The state of the calling thread.

    Raises:
        TypeError: ``devices`` or ``memory`` is not an integer.
        ValueError: ``devices`` or ``memory`` is too large, or not positive.
    """

    name = "emulated"
    is_late = False

    def __init__(self, devices: int, memory: int, visible: Sequence[int] | None = None) -> None:
        machine = Machine(devices, memory, visible)
        self._use(machine, Parts(machine, Work(machine)))

    def _use(self, machine: Machine, parts: Parts) -> None:
        """Take the state of ``machine``, and the calls of ``parts``."""
        self._machine = machine
        self._parts = parts
        self.races = machine.races
        self.contents = machine.contents
        self.clock = machine.clock
        self.devices = machine.devices
        self.thread = machine.thread

        devices = parts.devices
        self.driverGetVersion = devices.driverGetVersion
        self.runtimeGetVersion = devices.runtimeGetVersion
        self.visibleDeviceCount = devices.visibleDeviceCount
        self.getDeviceCount = devices.getDeviceCount
        self.getDevice = devices.getDevice
        self.setDevice = devices.setDevice
        self.deviceSynchronize = devices.deviceSynchronize
        self.getDeviceProperties = devices.getDeviceProperties
        self.deviceCanAccessPeer = devices.deviceCanAccessPeer
        self.deviceEnablePeerAccess = devices.deviceEnablePeerAccess
        self.deviceDisablePeerAccess = devices.deviceDisablePeerAccess
        self.canAccess = devices.canAccess
        self.deviceGetStreamPriorityRange = devices.deviceGetStreamPriorityRange
        self.profilerStart = devices.profilerStart
        self.profilerStop = devices.profilerStop

        memory = parts.memory
        self.memGetInfo = memory.memGetInfo
        self.malloc = memory.malloc
        self.free = memory.free
        self.mallocAsync = memory.mallocAsync
        self.freeAsync = memory.freeAsync
        self.poison = memory.poison
        self.expose = memory.expose
        self.hostRegister = memory.hostRegister
        self.hostUnregister = memory.hostUnregister
        self.ipcGetMemHandle = memory.ipcGetMemHandle
        self.ipcOpenMemHandle = memory.ipcOpenMemHandle
        self.ipcCloseMemHandle = memory.ipcCloseMemHandle
        self.pointerGetDevice = memory.pointerGetDevice
        self.pointerIsPageLocked = memory.pointerIsPageLocked
        self.memoryAt = memory.memoryAt
        self.memoryBounds = memory.memoryBounds
        self.addVariable = memory.addVariable

        copies = parts.copies
        self.memcpy = copies.memcpy
        self.memcpyAsync = copies.memcpyAsync
        self.memcpy2DAsync = copies.memcpy2DAsync
        self.memcpyPeerAsync = copies.memcpyPeerAsync
        self.memsetAsync = copies.memsetAsync

        streams = parts.streams
        self.streamCreateWithPriority = streams.streamCreateWithPriority
        self.streamDestroy = streams.streamDestroy
        self.streamGetFlags = streams.streamGetFlags
        self.streamGetPriority = streams.streamGetPriority
        self.streamQuery = streams.streamQuery
        self.streamSynchronize = streams.streamSynchronize
        self.streamWaitEvent = streams.streamWaitEvent
        self.announceStreams = streams.announceStreams

        green_contexts = parts.green_contexts
        self.deviceGetWorkQueueConcurrency = green_contexts.deviceGetWorkQueueConcurrency
        self.greenCtxCreate = green_contexts.greenCtxCreate
        self.greenCtxDestroy = green_contexts.greenCtxDestroy
        self.greenCtxStreamCreate = green_contexts.greenCtxStreamCreate

        launches = parts.launches
        self.launch = launches.launch
        self.launchTogether = launches.launchTogether
        self.multiprocessors = launches.multiprocessors
        self.prepareWork = launches.prepareWork
        self.sleep = launches.sleep

        events = parts.events
        self.eventCreateWithFlags = events.eventCreateWithFlags
        self.eventDestroy = events.eventDestroy
        self.eventRecord = events.eventRecord
        self.eventRecordWithFlags = events.eventRecordWithFlags
        self.eventQuery = events.eventQuery
        self.eventSynchronize = events.eventSynchronize
        self.eventElapsedTime = events.eventElapsedTime
        self.ipcGetEventHandle = events.ipcGetEventHandle
        self.ipcOpenEventHandle = events.ipcOpenEventHandle

        captures = parts.captures
        self.streamBeginCapture = captures.streamBeginCapture
        self.streamBeginCaptureToGraph = captures.streamBeginCaptureToGraph
        self.streamEndCapture = captures.streamEndCapture
        self.streamIsCapturing = captures.streamIsCapturing
        self.streamGetCaptureInfo = captures.streamGetCaptureInfo
        self.captureOf = captures.captureOf
        self.capturing = captures.capturing
        self.defers = captures.defers
        self.beginGraph = captures.beginGraph
        self.endGraph = captures.endGraph
        self.streamAddConditional = captures.streamAddConditional
        self.streamSetConditional = captures.streamSetConditional

        graphs = parts.graphs
        self.graphDestroy = graphs.graphDestroy
        self.graphInstantiate = graphs.graphInstantiate
        self.graphLaunch = graphs.graphLaunch
        self.tryGraphLaunch = graphs.tryGraphLaunch
        self.prepareLaunch = graphs.prepareLaunch
        self.graphExecDestroy = graphs.graphExecDestroy
        self.graphDebugDotPrint = graphs.graphDebugDotPrint
        self.graphContents = graphs.graphContents
        self.graphNodes = graphs.graphNodes
        self.graphChild = graphs.graphChild
        self.graphNodeAlone = graphs.graphNodeAlone
        self.graphWrites = graphs.graphWrites
        self.graphExecGetId = graphs.graphExecGetId
        self.graphExecUpdate = graphs.graphExecUpdate
        self.graphMove = graphs.graphMove
        self.graphNodeSetEnabled = graphs.graphNodeSetEnabled
        self.graphNodeGetEnabled = graphs.graphNodeGetEnabled
        self.graphAbandon = graphs.graphDestroy

    def environment(self) -> dict[str, str]:
        machine = self._machine
        return {
            "CUDA_VISIBLE_DEVICES": ",".join(str(device.ordinal) for device in machine.devices),
            "TCUDA_RUNTIME": self.name,
            "TCUDA_EMULATED_DEVICES": str(len(machine.all_devices)),
            "TCUDA_EMULATED_MEMORY": str(machine.all_devices[0].memory.limit),
            "TCUDA_EMULATED_SCHEDULE": "eager",
        }

    def watchRaces(self, detector: _core.RaceDetector | None) -> None:
        machine = self._machine
        with machine.lock:
            page_locked = {each.begin: each.end - each.begin for each in machine.memory.page_locked.copy()}
            machine.races.begin(detector, page_locked)
            self._parts.work.be_watched(detector is not None)

    def beginTrace(self) -> EmulatedTrace:
        return EmulatedTrace(self.clock, self.races.make_trace)

    def memoryDriver(self) -> _core.Driver:
        return _core.EmulatedDriver([device.memory for device in self.devices], self._parts.driver_streams)

    def nvml(self) -> EmulatedNvml:
        return EmulatedNvml(self._machine.all_devices, self.clock)
