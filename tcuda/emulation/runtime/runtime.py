"""The protocol ``Runtime`` on emulated devices.

An operation runs at once on the host, which is a legal order of any correctly synchronised program. The operation is
*complete* at a time of the emulated clock; queries, synchronisation and events go by that time. On a stream that
captures, the operation is kept instead, and runs when the graph is launched. Calls that CUDA refuses are refused with
the status that CUDA gives on an H200.

A method finds the objects of the handles, refuses the calls that CUDA refuses, and does its work, in this order.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._base.errors import AcceleratorError, UnjoinedStream
from tcuda._base.statuses import Status
from tcuda._base.user_code import calling_place
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    CAPTURE_STATUS_ACTIVE,
    CAPTURE_STATUS_INVALIDATED,
    CAPTURE_STATUS_NONE,
    CONDITIONAL_IF,
    CONDITIONAL_WHILE,
    EVENT_BLOCKING_SYNC,
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    EVENT_RECORD_EXTERNAL,
    EVENT_WAIT_EXTERNAL,
    GRAPH_DOT_VERBOSE,
    IPC_LAZY_ENABLE_PEER_ACCESS,
    MEMCPY_DEVICE_TO_DEVICE,
    STREAM_DEFAULT,
    STREAM_NON_BLOCKING,
    STREAM_PER_THREAD,
    Moved,
)
from tcuda._runtime.update_failures import update_failure
from tcuda.emulation.runtime import costs, settings
from tcuda.emulation.runtime.accesses import WRITE, span
from tcuda.emulation.runtime.allocation import Allocation
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.captures import Captures
from tcuda.emulation.runtime.clock import CALL, Clock
from tcuda.emulation.runtime.conditionals import (
    Condition,
    ConditionalNode,
    ConditionalNodes,
    has_legal_bodies,
)
from tcuda.emulation.runtime.contents import Contents
from tcuda.emulation.runtime.default_stream import DEFAULT_STREAM
from tcuda.emulation.runtime.devices import STREAM_PRIORITY_RANGE, EmulatedDevice
from tcuda.emulation.runtime.driver_streams import DriverStreams
from tcuda.emulation.runtime.events import Events, ExternalRecord, ExternalWait
from tcuda.emulation.runtime.graph_changes import MovedGraph, can_be_disabled, difference, without
from tcuda.emulation.runtime.graphs import Executable, Graph, Node
from tcuda.emulation.runtime.green_contexts import WORK_QUEUES, GreenContexts
from tcuda.emulation.runtime.handles import Handles
from tcuda.emulation.runtime.host_uses import HostUses
from tcuda.emulation.runtime.imports import Imports
from tcuda.emulation.runtime.memory import Memory
from tcuda.emulation.runtime.nvml import EmulatedNvml
from tcuda.emulation.runtime.shared_events import SharedEvent, SharedEvents
from tcuda.emulation.runtime.streams import Streams
from tcuda.emulation.runtime.timeline import Timeline
from tcuda.emulation.runtime.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tcuda._base.user_code import Place
    from tcuda._runtime.protocol import Conditional, GraphCapture, GraphContents, GraphNode, Move
    from tcuda.emulation.runtime.accesses import Accesses
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.captures import Capture
    from tcuda.emulation.runtime.events import Event
    from tcuda.emulation.runtime.graphs import Places
    from tcuda.emulation.runtime.memory import Copy

_VERSION = 13000


class EmulatedRuntime:
    """Emulated devices with one clock.

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
        settings.check(devices, memory)
        self.clock = Clock()
        seen = range(devices) if visible is None else visible
        self.devices = [EmulatedDevice(index, memory, ordinal) for index, ordinal in enumerate(seen)]
        self._of_machine = sorted(
            [
                *self.devices,
                *(EmulatedDevice(-1, memory, ordinal) for ordinal in range(devices) if ordinal not in seen),
            ],
            key=lambda device: device.ordinal,
        )
        self._lock = self.clock._lock
        self.thread = _core.EmulatedThread(len(self.devices), DEFAULT_STREAM)
        self._handles = Handles()
        self.contents = Contents()
        self._memory = Memory(self.devices, self.contents)
        self._captures = Captures()
        self._streams = Streams(self.devices, self.thread, self._captures, self.clock)
        self._green_contexts = GreenContexts(self._handles)
        self._events = Events(self._handles, self._captures)
        self.races = Watch(self._streams, self._handles)
        self._is_indirect = self.is_late
        """Whether the work of a call needs more than a call of it. Small kernels are too short for two more calls."""
        self._host_uses = HostUses(self.clock)
        self._imports = Imports(self.devices)
        self._shared_events = SharedEvents(self._handles, self.clock)
        self._graphs: dict[int, Graph] = {}
        self._conditionals = ConditionalNodes(self._handles)
        self._executables: dict[int, Executable] = {}
        self._numbers_of_executables = itertools.count(1)
        self._ledger: _core.Ledger | None = None

    # Devices

    def driverGetVersion(self) -> int:
        return _VERSION

    def runtimeGetVersion(self) -> int:
        return _VERSION

    def visibleDeviceCount(self) -> int:
        return len(self.devices)

    def environment(self) -> dict[str, str]:
        return {
            "CUDA_VISIBLE_DEVICES": ",".join(str(device.ordinal) for device in self.devices),
            "TCUDA_RUNTIME": self.name,
            "TCUDA_EMULATED_DEVICES": str(len(self._of_machine)),
            "TCUDA_EMULATED_MEMORY": str(self._of_machine[0].memory.limit),
            "TCUDA_EMULATED_SCHEDULE": "eager",
        }

    def getDeviceCount(self) -> int:
        return len(self.devices)

    def getDevice(self) -> int:
        return self.thread.device

    def setDevice(self, device: int) -> None:
        self._device(device, ("cudaSetDevice({})", device))
        self.thread.device = device

    def deviceSynchronize(self) -> None:
        call = ("cudaDeviceSynchronize()",)
        with self._lock:
            device = self.thread.device
            for capture in self._captures.in_progress:
                if capture.device == device:
                    raise capture.invalidate(call)
            self._captures.forbid_unsafe(call)
            self.clock.wait_until(self._streams.ready(device))
            self.races.watcher.device_finished(device)

    def getDeviceProperties(self, device: int) -> Mapping[str, Any]:
        return self._device(device, ("cudaGetDeviceProperties({})", device)).properties()

    def deviceCanAccessPeer(self, device: int, peerDevice: int) -> int:
        call = "cudaDeviceCanAccessPeer({}, {})", device, peerDevice
        return int(self._device(device, call) is not self._device(peerDevice, call))

    def deviceEnablePeerAccess(self, peerDevice: int) -> None:
        call = "cudaDeviceEnablePeerAccess({})", peerDevice
        self._device(peerDevice, call)
        device = self.devices[self.thread.device]
        if peerDevice == device.index:
            raise failure(Status.PEER_ACCESS_UNSUPPORTED, call)
        if peerDevice in device.peers:
            raise failure(Status.PEER_ACCESS_ALREADY_ENABLED, call)
        device.peers.add(peerDevice)

    def deviceDisablePeerAccess(self, peerDevice: int) -> None:
        call = "cudaDeviceDisablePeerAccess({})", peerDevice
        self._device(peerDevice, call)
        device = self.devices[self.thread.device]
        if peerDevice not in device.peers:
            raise failure(Status.PEER_ACCESS_NOT_ENABLED, call)
        device.peers.remove(peerDevice)

    def deviceGetStreamPriorityRange(self) -> tuple[int, int]:
        return STREAM_PRIORITY_RANGE

    def profilerStart(self) -> None:
        pass

    def profilerStop(self) -> None:
        pass

    def _device(self, index: int, call: Call) -> EmulatedDevice:
        if not 0 <= index < len(self.devices):
            raise failure(Status.INVALID_DEVICE, call)
        return self.devices[index]

    # Memory

    def memGetInfo(self) -> tuple[int, int]:
        memory = self.devices[self.thread.device].memory
        return memory.limit - memory.used, memory.limit

    def malloc(self, size: int) -> int:
        call = "cudaMalloc({})", size
        with self._lock:
            self._captures.forbid_unsafe(call)
            return self._allocate(size, 0, call)

    def free(self, ptr: int) -> None:
        call = "cudaFree({:#x})", ptr
        with self._lock:
            self._captures.forbid_unsafe(call)
            device = self._free(ptr, call)
            if device is not None:
                self.clock.wait_until(self._streams.ready(device.index))
                self.races.watcher.device_finished(device.index)

    def mallocAsync(self, size: int, stream: int) -> int:
        call = "cudaMallocAsync({}, {:#x})", size, stream
        with self._lock:
            timeline = self._streams.find(stream, call)
            self._enqueue(timeline, Node("mem alloc", nbytes=size, kind="mem_alloc"), call)
            ptr = self._allocate(size, stream, call, exportable=False)
            if timeline.capture is not None:
                release = self.devices[self.thread.device].memory.release
                timeline.capture.graph.allocated[ptr] = Allocation(ptr, release)
            return ptr

    def freeAsync(self, ptr: int, stream: int) -> None:
        call = "cudaFreeAsync({:#x}, {:#x})", ptr, stream
        with self._lock:
            timeline = self._streams.find(stream, call)
            if timeline.capture is not None:
                self._enqueue(timeline, Node("mem free", work=lambda: self._free(ptr, call), kind="mem_free"), call)
                return
            self._free(ptr, call, timeline)
            self._enqueue(timeline, Node("mem free"), call)

    def hostRegister(self, ptr: int, size: int, flags: int) -> None:
        call = "cudaHostRegister({:#x}, {}, {})", ptr, size, flags
        with self._lock:
            self._captures.forbid_unsafe(call)
            self._memory.register(ptr, size, call)
            self.races.watcher.registered(ptr, size)

    def hostUnregister(self, ptr: int) -> None:
        call = "cudaHostUnregister({:#x})", ptr
        with self._lock:
            self._captures.forbid_unsafe(call)
            size = self._memory.unregister(ptr, call)
            self.races.watcher.unregistered(ptr, size)

    def memcpy(self, dst: int, src: int, size: int, kind: int) -> None:
        call = "cudaMemcpy({:#x}, {:#x}, {}, {})", dst, src, size, kind
        with self._lock:
            copy = self._memory.plan_copy(dst, src, size, kind, call)
            timeline = self._streams.find(0, call)
            self.clock.wait_until(self._run(timeline, self._copying(copy), call))
            # cudaMemcpy does not wait for a copy within devices.
            if len(copy.addresses) < 2:
                self.races.watcher.finished(timeline)

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        call = "cudaMemcpyAsync({:#x}, {:#x}, {}, {}, {:#x})", dst, src, size, kind, stream
        with self._lock:
            self._copy(self._memory.plan_copy(dst, src, size, kind, call), stream, call)

    def memcpy2DAsync(
        self, dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int
    ) -> None:
        text = "cudaMemcpy2DAsync({:#x}, {}, {:#x}, {}, {}, {}, {}, {:#x})"
        call = text, dst, dpitch, src, spitch, width, height, kind, stream
        with self._lock:
            self._copy(self._memory.plan_rows(dst, dpitch, src, spitch, width, height, kind, call), stream, call)

    def memcpyPeerAsync(self, dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None:
        text = "cudaMemcpyPeerAsync({:#x}, {}, {:#x}, {}, {}, {:#x})"
        call = text, dst, dstDevice, src, srcDevice, size, stream
        target, source = self._device(dstDevice, call), self._device(srcDevice, call)
        if size and (self._memory.owner(dst) is not target or self._memory.owner(src) is not source):
            raise failure(Status.INVALID_VALUE, call)
        with self._lock:
            self._copy(self._memory.plan_copy(dst, src, size, MEMCPY_DEVICE_TO_DEVICE, call), stream, call)

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:
        call = "cudaMemsetAsync({:#x}, {}, {}, {:#x})", ptr, value, size, stream
        with self._lock:
            fill = self._memory.plan_set(ptr, value, size, call)
            timeline = self._streams.find(stream, call)
            duration = costs.kernel(size, 0, timeline.multiprocessors)
            node = Node("memset", duration, fill, (ptr,) if size else (), size, kind="memset")
            if size and (self.races.watcher.follows or self._captures.in_progress):
                node.accesses = [span(ptr, size, WRITE, "ptr")]
            self._run(timeline, node, call)

    def ipcGetMemHandle(self, ptr: int) -> bytes:
        with self._lock:
            block = None if self.contents.unwritten is None else self._memory.block_from(ptr)
            if block is not None and self.contents.unwritten is not None:
                self.contents.unwritten.forget(*block)
            return self._imports.handle_of(ptr, ("cudaIpcGetMemHandle({:#x})", ptr))

    def ipcOpenMemHandle(self, handle: bytes, flags: int = IPC_LAZY_ENABLE_PEER_ACCESS) -> int:
        call = "cudaIpcOpenMemHandle({})", flags
        if flags != IPC_LAZY_ENABLE_PEER_ACCESS:
            raise failure(Status.INVALID_VALUE, call)
        with self._lock:
            return self._imports.open(handle, self.devices[self.thread.device], call)

    def ipcCloseMemHandle(self, ptr: int) -> None:
        with self._lock:
            block = self._memory.block_from(ptr) if self.races.watcher.follows else None
            closed = self._imports.close(ptr, ("cudaIpcCloseMemHandle({:#x})", ptr))
            if closed and block is not None:
                self.races.watcher.unmapped(*block)

    def _allocate(self, size: int, stream: int, call: Call, *, exportable: bool = True) -> int:
        ptr = self.devices[self.thread.device].memory.allocate(size, exportable)
        if size and not ptr:
            raise failure(Status.MEMORY_ALLOCATION, call)
        self.races.watcher.allocated(ptr, size, self.thread.device, stream)
        if ptr and self.contents.unwritten is not None:
            self.contents.unwritten.given(ptr, size, calling_place())
        return ptr

    def _free(self, ptr: int, call: Call, timeline: Timeline | None = None) -> EmulatedDevice | None:
        """Free memory, in the order of a stream or at once, and return its device.

        The result is None for a null pointer and for memory that a graph keeps.
        """
        graphs = [*self._graphs.values(), *(capture.graph for capture in self._captures.in_progress)]
        graphs += [executable.graph for executable in list(self._executables.values())]
        if not ptr or any(ptr in graph.allocated for graph in graphs):
            return None
        block = self._memory.block_from(ptr) if self.races.watcher.follows else None
        device = self._memory.free(ptr, call)
        if block is not None:
            self.races.watcher.freed(*block, timeline)
        return device

    def _copy(self, copy: Copy, stream: int, call: Call) -> None:
        timeline = self._streams.find(stream, call)
        end = self._run(timeline, self._copying(copy), call)
        if copy.host and timeline.capture is None:
            self._host_uses.add(copy.host, timeline, end)
        if copy.host_waits:
            self.clock.wait_until(end)
            if timeline.capture is None:
                self.races.watcher.finished(timeline)

    def _copying(self, copy: Copy) -> Node:
        node = Node("memcpy", copy.duration, copy.make, copy.addresses, copy.size, kind="memcpy")
        node.host = copy.host
        # A watcher that begins later needs the accesses of the nodes of graphs.
        if self.races.watcher.follows or self._captures.in_progress:
            node.accesses = self._memory.accesses(copy)
            node.pageable = len(node.accesses) < 2 and copy.layout is not None
        return node

    # Streams

    def streamCreateWithPriority(self, flags: int, priority: int) -> int:
        if flags not in (STREAM_DEFAULT, STREAM_NON_BLOCKING):
            raise failure(Status.INVALID_VALUE, ("cudaStreamCreateWithPriority({}, {})", flags, priority))
        return self._new_stream(self.thread.device, flags, priority, costs.MULTIPROCESSORS, [])

    def _new_stream(self, device: int, flags: int, priority: int, multiprocessors: int, streams: list[int]) -> int:
        least, greatest = STREAM_PRIORITY_RANGE
        with self._lock:
            handle = self._handles.new()
            streams.append(handle)  # first, because a signal handler may raise
            level = min(least, max(greatest, priority))
            timeline = Timeline(handle, device, flags, level, self.clock.now(), multiprocessors)
            self._streams.add(timeline)
            self.races.watcher.created(timeline)
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
            self.races.watcher.destroyed(timeline)

    def streamGetFlags(self, stream: int) -> int:
        return self._streams.find(stream, ("cudaStreamGetFlags({:#x})", stream)).flags

    def streamGetPriority(self, stream: int) -> int:
        return self._streams.find(stream, ("cudaStreamGetPriority({:#x})", stream)).priority

    def streamQuery(self, stream: int) -> int:
        try:
            with self._lock:
                timeline = self._streams.observe(stream, ("cudaStreamQuery({:#x})", stream))
                if timeline.ready > self.clock.advance(CALL):
                    return Status.NOT_READY
                self.races.watcher.finished(timeline)
                return Status.SUCCESS
        except AcceleratorError as error:
            return error.error_code

    def streamSynchronize(self, stream: int) -> None:
        with self._lock:
            timeline = self._streams.observe(stream, ("cudaStreamSynchronize({:#x})", stream))
            self.clock.wait_until(timeline.ready)
            self.races.watcher.finished(timeline)

    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        call = "cudaStreamWaitEvent({:#x}, {:#x}, {})", stream, event, flags
        if flags not in (0, EVENT_WAIT_EXTERNAL):
            raise failure(Status.INVALID_VALUE, call)
        with self._lock:
            timeline = self._streams.created.get(stream) or self._streams.find(stream, call)
            recorded = self._events.by_handle.get(event) or self._events.refuse(event, call)
            if recorded.capture is not None:
                self._wait_in_capture(timeline, recorded, recorded.capture, call)
            elif timeline.capture is not None and flags == EVENT_WAIT_EXTERNAL:
                timeline.capture.add(timeline.handle, ExternalWait(recorded))
            elif recorded.time is not None:
                if timeline.capture is not None:
                    raise timeline.capture.invalidate(call, Status.STREAM_CAPTURE_ISOLATION)
                if recorded.time > timeline.ready:
                    timeline.ready = recorded.time
                self.races.watcher.waited(recorded, timeline)

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

    # Green contexts

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
                self.streamDestroy(stream)

    def greenCtxStreamCreate(self, context: int, flags: int, priority: int) -> int:
        call = "cuGreenCtxStreamCreate({:#x}, {}, {})", context, flags, priority
        with self._lock:
            found = self._green_contexts.of_stream(context, flags, call)
        return self._new_stream(found.device, flags, priority, found.multiprocessors, found.streams)

    # Operations on streams

    def launch(
        self,
        stream: int,
        work: Callable[[], object],
        nbytes: int,
        flops: int = 0,
        *,
        name: str = "kernel",
        addresses: Iterable[int] = (),
        accesses: Accesses = (),
    ) -> None:
        """Run ``work`` as a kernel on ``stream``, or, if the stream captures, at every launch of the graph.

        Args:
            stream: The stream, which is of the current device.
            work: A function that does the work of the kernel on the memory. The function must keep no memory alive,
                because a graph keeps the function.
            nbytes: The bytes of memory that the kernel moves.
            flops: The number of floating-point operations of the kernel.
            name: The name of the kernel in a drawing of the graph.
            addresses: The device memory that the kernel reads and writes.
            accesses: What the kernel reads and writes, for a race detector. Nobody asks for the accesses unless
                a watcher follows the program or the stream captures.
        """
        call = ("cudaLaunchKernel()",)
        if self.contents.unwritten is not None:
            work = self.contents.unwritten.around(work, accesses, name)
        # Without a capture the lock is not needed, because nothing is changed before the work.
        timeline = self._on_current_device(stream, call)
        duration = costs.kernel(nbytes, flops, timeline.multiprocessors)
        if self._captures.in_progress:
            with self._lock:
                if timeline.capture is not None:
                    self._enqueue(timeline, Node(name, duration, work, addresses, nbytes, accesses), call)
                    return
                self._streams.forbid_implicit(timeline, call)
        # The lock is not held, because the work may be slow, and may free arrays.
        if self._is_indirect:
            self._perform(work, [timeline])
        else:  # small kernels are too short for one more call
            work()
        with self._lock:
            self._streams.times.occupy(timeline, duration)
        self.races.watcher.work(timeline, name, accesses)

    def prepareWork(self, work: _core.EmulatedWork, obstacles: Iterable[list[Any]]) -> None:
        """Let ``work`` begin and end kernels that the caller runs, while nothing captures or watches them.

        For a kernel of a microsecond, ``work`` does what :meth:`launch` does for all kernels.

        Args:
            work: The object that begins and ends the kernels.
            obstacles: Lists that are empty while the arrays can do work at once.
        """
        work.use(
            self._streams.times,
            self.thread,
            self._streams.created,
            (self._captures.in_progress, self.races.detectors, self.contents.watched, *obstacles),
            costs.kernel,
        )

    def launchTogether(
        self,
        streams: Sequence[tuple[int, int]],
        work: Callable[[], object],
        duration: int,
        *,
        name: str,
        addresses: Iterable[int],
        nbytes: int,
        accesses: Accesses = (),
        meets: bool = False,
    ) -> None:
        """Run ``work`` as kernels on several streams that wait for each other, as the kernels of a collective do.

        If the streams capture, each launch of the graph does the work. A failed call leaves the streams unchanged.

        Args:
            streams: Device and handle of each stream. All of them take part in one capture, or none captures.
            work: A function that does the work of all kernels. The function must keep no memory alive.
            duration: The nanoseconds that each of the kernels takes.
            name: The name of the kernels in a drawing of the graph.
            addresses: The device memory that the kernels read and write.
            nbytes: The bytes of memory that the kernels move.
            accesses: What the kernels read and write, for a race detector.
            meets: Whether the work waits for other threads or processes.
        """
        call = ("cudaLaunchKernel()",)
        if self.contents.unwritten is not None:
            work = self.contents.unwritten.around(work, accesses, name)
        with self._lock:
            timelines = [self._streams.find(handle, call, device) for device, handle in streams]
            capture = timelines[0].capture
            if any(timeline.capture is not capture for timeline in timelines):
                raise failure(Status.STREAM_CAPTURE_MERGE, call)
            if capture is not None:
                if not capture.valid:
                    raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
                node = Node(name, duration, work, addresses, nbytes, accesses, meets=meets)
                node.devices = [timeline.device for timeline in timelines]
                node.stack = self.races.watcher.stack()
                capture.add_together([timeline.handle for timeline in timelines], node)
                return
            if self._captures.in_progress:
                for timeline in timelines:
                    self._streams.forbid_implicit(timeline, call)
        # The lock is not held, because the work may be slow, and may wait for another thread or process.
        self._perform(work, timelines, meets=meets)
        with self._lock:
            self._streams.occupy_together(timelines, duration)
        self.races.watcher.work_together(timelines, name, accesses)

    def captureOf(self, device: int, stream: int) -> int:
        """Return the number of the capture in which ``stream`` of ``device`` takes part; 0 if there is none."""
        with self._lock:
            capture = self._streams.find(stream, ("cudaStreamGetCaptureInfo({:#x})", stream), device).capture
            return 0 if capture is None else capture.number

    def sleep(self, cycles: int, stream: int) -> None:
        call = "tcuda_spin({}, {:#x})", cycles, stream
        with self._lock:
            duration = min(max(0, cycles) * 1_000_000 // costs.CLOCK_KHZ, costs.LONGEST)
            self._enqueue(self._on_current_device(stream, call), Node("tcuda_spin", duration), call)

    def _on_current_device(self, handle: int, call: Call) -> Timeline:
        """Return the stream ``handle`` for work that is allowed only while the device of the stream is current."""
        timeline = self._streams.find(handle, call)
        if timeline.device != self.thread.device:
            raise failure(Status.INVALID_RESOURCE_HANDLE, call)
        return timeline

    def _enqueue(self, timeline: Timeline, node: Node, call: Call) -> int:
        """Add an operation to ``timeline``, and return the time at which the operation is complete."""
        if timeline.capture is not None:
            if not timeline.capture.valid:
                raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
            node.stack = self.races.watcher.stack()
            node.devices = (timeline.device,)
            if node.host:
                node.hold = self._host_uses.hold(node.host)
            timeline.capture.add(timeline.handle, node)
            return self.clock.now()
        if self._captures.in_progress:
            self._streams.forbid_implicit(timeline, call)
        return self._streams.times.occupy(timeline, node.duration)

    def _run(self, timeline: Timeline, node: Node, call: Call) -> int:
        """Add an operation to ``timeline``, do its work unless the stream captures, and return the time of its end."""
        end = self._enqueue(timeline, node, call)
        if timeline.capture is None:
            timelines = self._taking_part(timeline, node)
            self._perform(node.work, timelines)
            self.races.watcher.moved(timelines, node)
        return end

    def _taking_part(self, timeline: Timeline, node: Node) -> list[Timeline]:
        """Return the streams that a copy or a memset on ``timeline`` waits for, and that wait for the operation.

        A copy between devices on a legacy default stream has the legacy default streams of both devices ("Peer-to-Peer
        Memory Copy" in the CUDA C++ Programming Guide). Any other operation has its own stream only.
        """
        if timeline.handle == 0 and len(node.addresses) > 1:
            devices = self._memory.devices_of(node.addresses)
            if len(devices) > 1:
                return [self._streams.default(device) for device in sorted({timeline.device, *devices})]
        return [timeline]

    def _perform(self, work: Callable[[], object], timelines: Sequence[Timeline], *, meets: bool = False) -> None:
        """Do ``work`` of ``timelines``, which do not capture.

        Args:
            work: The work.
            timelines: The streams that the work belongs to.
            meets: Whether the work waits for other threads or processes.
        """
        self.races.watcher.do(work)

    def _perform_graph(self, executable: Executable, timeline: Timeline) -> None:
        """Do the work of ``executable`` on ``timeline``, which does not capture."""
        self.races.watcher.launching(executable)
        self._perform(executable.run, [timeline])

    def poison(self, ptr: int, size: int, value: int, stream: int) -> None:
        """Set all bytes of memory that was allocated for ``stream`` to ``value``."""
        fill = functools.partial(ctypes.memset, ptr, value, size)
        unwritten = self.contents.unwritten
        if unwritten is None:
            self._begin_memory(fill, stream)
            return
        line = calling_place()

        def poison() -> None:
            fill()
            unwritten.given(ptr, size, line)

        self._begin_memory(poison, stream)

    def expose(self, ptr: int, size: int, stream: int) -> None:
        """Let memory that was allocated for ``stream`` count as written."""
        if self.contents.unwritten is not None:
            self._begin_memory(functools.partial(self.contents.unwritten.forget, ptr, size), stream)

    def _begin_memory(self, work: Callable[[], object], stream: int) -> None:
        """Do ``work`` before all work of ``stream`` on memory that was allocated for the stream."""
        work()

    # Events

    def eventCreateWithFlags(self, flags: int) -> int:
        known = EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING | EVENT_INTERPROCESS
        timed_interprocess = flags & EVENT_INTERPROCESS and not flags & EVENT_DISABLE_TIMING
        if flags & ~known or timed_interprocess:
            raise failure(Status.INVALID_VALUE, ("cudaEventCreateWithFlags({})", flags))
        with self._lock:
            if not flags & EVENT_INTERPROCESS:
                return self._events.create(self.thread.device, flags)
            event = self._shared_events.create(self.thread.device, flags)
            self._events.by_handle[event.handle] = event
            return event.handle

    def eventDestroy(self, event: int) -> None:
        with self._lock:
            destroyed = self._events.find(event, ("cudaEventDestroy({:#x})", event))
            del self._events.by_handle[event]
            self.races.watcher.event_destroyed(destroyed)
            if destroyed.interprocess:
                assert isinstance(destroyed, SharedEvent)
                self._shared_events.give_back(destroyed)

    def eventRecord(self, event: int, stream: int) -> None:
        call = "cudaEventRecord({:#x}, {:#x})", event, stream
        with self._lock:
            recorded = self._events.by_handle.get(event) or self._events.refuse(event, call)
            timeline = self._streams.created.get(stream) or self._streams.find(stream, call)
            if recorded.device != timeline.device:
                raise failure(Status.INVALID_RESOURCE_HANDLE, call)
            capture = timeline.capture
            if capture is not None:
                recorded.time, recorded.capture = None, capture
                recorded.places = capture.seen_by(timeline.handle)
                return
            if self._captures.in_progress:
                self._streams.forbid_implicit(timeline, call)
            timeline.ready = start = self._streams.times.start(timeline)
            recorded.time, recorded.capture = start, None
            self.races.watcher.recorded(recorded, timeline)

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
                if (recorded.time or 0) > self.clock.advance(CALL):
                    return Status.NOT_READY
                self.races.watcher.completed(recorded)
                return Status.SUCCESS
        except AcceleratorError as error:
            return error.error_code

    def eventSynchronize(self, event: int) -> None:
        with self._lock:
            recorded = self._events.observe(event, ("cudaEventSynchronize({:#x})", event))
            self.clock.wait_until(recorded.time or 0)
            self.races.watcher.completed(recorded)

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
            if max(first.time, last.time) > self.clock.now():
                raise failure(Status.NOT_READY, call)
            # the host knows now that both events are complete
            self.races.watcher.completed(first)
            self.races.watcher.completed(last)
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
            event = self._shared_events.open(handle, self.thread.device, call)
            self._events.by_handle[event.handle] = event
            return event.handle

    # Captures

    def streamBeginCapture(self, stream: int, mode: int) -> None:
        call = "cudaStreamBeginCapture({:#x}, {})", stream, mode
        with self._lock:
            if not 0 <= mode <= CAPTURE_RELAXED:
                raise failure(Status.INVALID_VALUE, call)
            self._begin_capture(stream, mode, call)

    def streamBeginCaptureToGraph(self, stream: int, graph: int, mode: int) -> None:
        """Capture the work of ``stream`` into ``graph``, which must be the body of a conditional node."""
        call = "cudaStreamBeginCaptureToGraph({:#x}, {:#x}, {})", stream, graph, mode
        with self._lock:
            node = self._conditionals.find(graph)
            if node is None or not 0 <= mode <= CAPTURE_RELAXED:
                raise failure(Status.INVALID_VALUE, call)
            self._begin_capture(stream, mode, call, node.body, graph)

    def _begin_capture(self, stream: int, mode: int, call: Call, *into: Any, noted: GraphCapture | None = None) -> None:
        """Begin the capture of ``stream``, and note its number in ``noted``.

        ``into`` is nothing, or the body of a conditional node and its handle.
        """
        timeline = self._streams.find(stream, call)
        if timeline.handle == 0:
            raise failure(Status.STREAM_CAPTURE_UNSUPPORTED, call)
        if timeline.capture is not None:
            raise failure(Status.ILLEGAL_STATE, call)
        begun = self._captures.new(timeline.handle, timeline.device, mode, *into)
        if noted is not None:
            noted.number = begun.number  # before the capture begins, because a signal handler may raise in between
        timeline.capture = begun
        self._captures.in_progress.append(begun)

    def beginGraph(self, ledger: _core.Ledger, pool: tuple[int, int], capture: GraphCapture) -> None:
        call = "cudaStreamBeginCapture({:#x}, {})", capture.stream, capture.mode
        expected = ledger.expect_capture()
        try:
            with self._lock:
                self._begin_capture(capture.stream, capture.mode, call, noted=capture)
            ledger.begin_capture(pool, capture.device, capture.stream)
        finally:
            expected.end()

    def endGraph(self, ledger: _core.Ledger, capture: GraphCapture, flags: int | None, keep: bool) -> None:
        graph = self.streamEndCapture(capture.stream)
        capture.ended = graph, 0, 0, []
        nodes, addresses = self.graphContents(graph)
        for body in capture.bodies:
            addresses = [*addresses, *self.graphContents(body).addresses]
        held = ledger.hold(addresses, capture.number)
        capture.ended = graph, 0, nodes, held
        executable = 0 if flags is None else self.graphInstantiate(graph, flags)
        capture.ended = (graph if keep else 0), executable, nodes, held
        if not keep:
            self.graphDestroy(graph)
        ledger.end_capture(capture.number)

    def streamAddConditional(self, stream: int, kind: int, flag: int, size: int) -> Conditional:
        call = "cudaGraphAddNode({:#x}, {})", stream, kind
        with self._lock:
            if kind not in (CONDITIONAL_IF, CONDITIONAL_WHILE):
                raise failure(Status.INVALID_VALUE, call)
            timeline = self._on_current_device(stream, call)
            if timeline.capture is None:
                raise failure(Status.ILLEGAL_STATE, call)
            condition = Condition()
            node = ConditionalNode(condition, self._captures.new_body(), repeats=kind == CONDITIONAL_WHILE)
            self._enqueue(timeline, self._deciding(condition.setter(flag, size)), call)
            self._enqueue(timeline, node, call)
            return self._conditionals.add(node)

    def streamSetConditional(self, stream: int, handle: int, flag: int, size: int) -> None:
        call = "cudaLaunchKernel({:#x})", stream
        with self._lock:
            node = self._conditionals.find(handle)
            timeline = self._on_current_device(stream, call)
            if node is None or timeline.capture is None:
                raise failure(Status.INVALID_VALUE, call)
            self._enqueue(timeline, self._deciding(node.condition.setter(flag, size)), call)

    def _deciding(self, node: Node) -> Node:
        """Let ``node``, whose result decides what a graph does, refuse memory that no work has written."""
        if self.contents.unwritten is not None:
            node.work = self.contents.unwritten.around(node.work, node.accesses, node.name, decides=True)
        return node

    def streamEndCapture(self, stream: int) -> int:
        call = "cudaStreamEndCapture({:#x})", stream
        with self._lock:
            timeline = self._streams.find(stream, call)
            capture = timeline.capture
            if capture is None:
                raise failure(Status.ILLEGAL_STATE, call)
            if not capture.may_end_here():
                self._streams.end_capture(capture)
                capture.drop_graph()
                raise failure(Status.STREAM_CAPTURE_WRONG_THREAD, call)
            if capture.origin != timeline.handle:
                raise capture.invalidate(call, Status.STREAM_CAPTURE_UNMATCHED)
            self._streams.end_capture(capture)
            try:
                return self._captured(capture, call)
            finally:
                capture.drop_graph()

    def _captured(self, capture: Capture, call: Call) -> int:
        """Return the graph of ``capture``, which has ended."""
        if not capture.valid:
            raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
        unjoined = capture.unjoined()
        if unjoined:
            raise self._unjoined(capture, unjoined, call)
        if capture.body_handle:
            return capture.body_handle
        graph = self._handles.new()
        self._graphs[graph] = capture.graph
        return graph

    def _unjoined(self, capture: Capture, streams: Mapping[int, Place | None], call: Call) -> AcceleratorError:
        """Return the error for the end of ``capture``, which does not wait for ``streams``."""
        error = failure(Status.STREAM_CAPTURE_UNJOINED, call)
        for stream, place in streams.items():
            timeline = self._streams.created.get(stream)  # None for a destroyed stream
            device = capture.device if timeline is None else timeline.device
            error._unjoined = (*error._unjoined, UnjoinedStream(device, stream, place))
        return error

    def streamIsCapturing(self, stream: int) -> bool:
        call = "cudaStreamIsCapturing({:#x})", stream
        with self._lock:
            capture = self._capture_of(stream, call)
            if capture is not None and not capture.valid:
                raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
            return capture is not None

    def streamGetCaptureInfo(self, stream: int) -> tuple[int, int]:
        with self._lock:
            capture = self._capture_of(stream, ("cudaStreamGetCaptureInfo({:#x})", stream))
            if capture is None:
                return CAPTURE_STATUS_NONE, 0
            return CAPTURE_STATUS_ACTIVE if capture.valid else CAPTURE_STATUS_INVALIDATED, capture.number

    def capturing(self, current_stream: Callable[[], Any]) -> bool:
        """Return whether a stream takes part in a capture, also in an invalidated one.

        Args:
            current_stream: A function that returns the stream, whose handle is its ``ptr``. The function is called only
                if a stream captures.
        """
        if not self._captures.in_progress:  # the common case, because every operation on an array asks
            return False
        return self._streams.find(current_stream().ptr, ("cudaStreamIsCapturing()",)).capture is not None

    defers = capturing
    """Return whether the work of a stream is done later than in the call that launches the work.

    Such work must keep no memory alive. The argument is that of :meth:`capturing`.
    """

    def _capture_of(self, stream: int, call: Call) -> Capture | None:
        """Return the capture in which ``stream`` takes part; refuse a default stream if another stream captures."""
        timeline = self._streams.find(stream, call)
        if self._captures.in_progress and self._streams.capture_beside(timeline) is not None:
            raise failure(Status.STREAM_CAPTURE_IMPLICIT, call)
        return timeline.capture

    # Graphs

    def graphDestroy(self, graph: int) -> None:
        if self._graphs.pop(graph, None) is None:
            raise failure(Status.INVALID_VALUE, ("cudaGraphDestroy({:#x})", graph))

    graphAbandon = graphDestroy

    def graphInstantiate(self, graph: int, flags: int) -> int:
        with self._lock:
            call = "cudaGraphInstantiate({:#x}, {})", graph, flags
            captured = self._graph(graph, call)
            if any(captured.bodies()) and any(known.source is captured for known in list(self._executables.values())):
                raise failure(Status.INVALID_VALUE, call)  # only one executable of such a graph may exist
            if not has_legal_bodies(captured, self._can_use):
                raise failure(Status.INVALID_VALUE, call)
            handle = self._handles.new()
            self._executables[handle] = Executable(captured, next(self._numbers_of_executables))
            return handle

    def graphLaunch(self, graphExec: int, stream: int) -> None:
        call = "cudaGraphLaunch({:#x}, {:#x})", graphExec, stream
        with self._lock:
            executable = self._executables.get(graphExec)
            if executable is None:
                raise failure(Status.INVALID_VALUE, call)
            timeline = self._streams.find(stream, call)
            if timeline.capture is not None:
                raise timeline.capture.invalidate(call)
            if self._captures.in_progress:
                self._streams.forbid_implicit(timeline, call)
        self._replay(executable, timeline)

    def tryGraphLaunch(self, graphExec: int, stream: int) -> int:
        """Launch an executable graph on ``stream`` if no capture forbids it, and return a status.

        In contrast to :meth:`graphLaunch`, a launch that is refused invalidates no capture.
        """
        with self._lock:
            executable = self._executables.get(graphExec)
            if executable is None:
                return Status.INVALID_VALUE
            timeline = self._streams.find(stream, ("cudaGraphLaunch({:#x}, {:#x})", graphExec, stream))
            if self._captures.in_progress:
                if timeline.capture is not None:
                    return Status.STREAM_CAPTURE_UNSUPPORTED
                if self._streams.capture_beside(timeline) is not None:
                    return Status.STREAM_CAPTURE_IMPLICIT
        self._replay(executable, timeline)
        return Status.SUCCESS

    def prepareLaunch(self, graphExec: int, owner: object, prepare: Callable[[], object]) -> None:
        """Let the next launches of an executable graph call ``prepare`` first, once for each owner."""
        prepare()

    def graphExecDestroy(self, graphExec: int) -> None:
        if self._executables.pop(graphExec, None) is None:
            raise failure(Status.INVALID_VALUE, ("cudaGraphExecDestroy({:#x})", graphExec))

    def graphDebugDotPrint(self, graph: int, path: str, flags: int) -> None:
        call = "cudaGraphDebugDotPrint({:#x}, {!r}, {})", graph, path, flags
        drawing = self._graph(graph, call).dot(verbose=bool(flags & GRAPH_DOT_VERBOSE))
        try:
            Path(path).write_text(drawing)
        except OSError:
            raise failure(Status.OPERATING_SYSTEM, call) from None

    def graphContents(self, graph: int) -> GraphContents:
        return self._graph(graph, ("cudaGraphGetNodes({:#x})", graph)).contents()

    def graphNodes(self, graph: int) -> list[GraphNode]:
        return self._graph(graph, ("cudaGraphGetNodes({:#x})", graph)).described()

    def graphExecGetId(self, graphExec: int) -> int:
        return self._executable(graphExec, ("cudaGraphExecGetId({:#x})", graphExec)).number

    def graphExecUpdate(self, graphExec: int, graph: int) -> None:
        call = "cudaGraphExecUpdate({:#x}, {:#x})", graphExec, graph
        with self._lock:
            executable, other = self._executable(graphExec, call), self._graph(graph, call)
            found = difference(executable.source, other, self._memory.owner)
            if found is not None:
                text = call[0].format(*call[1:])
                status = Status.GRAPH_EXEC_UPDATE_FAILURE
                raise update_failure(status, text, found.result, found.place, other.described())
            self._change(executable, other, executable.disabled)
            executable.preparations.clear()

    def graphMove(self, graphs: Sequence[int], graphExec: int, move: Move) -> Moved:
        call = "cudaGraphKernelNodeSetParams({:#x})", graphs[0]
        with self._lock:
            executable = self._executable(graphExec, call) if graphExec else None
            moved = MovedGraph(self._graph(graphs[0], call), move)
            if moved.nodes and not moved.doubtful:
                self._graphs[graphs[0]] = moved.graph
                self._conditionals.replace(moved.conditionals)
                if executable is not None:
                    self._change(executable, moved.graph, executable.disabled)
            addresses = [address for graph in graphs for address in self._graph(graph, call).contents().addresses]
            return Moved(moved.nodes, addresses, moved.doubtful)

    def graphNodeSetEnabled(self, graphExec: int, graph: int, place: int, enabled: bool) -> None:
        call = "cudaGraphNodeSetEnabled({:#x}, {}, {:d})", graphExec, place, enabled
        with self._lock:
            executable = self._executable(graphExec, call)
            if not can_be_disabled(self._graph(graph, call), place):
                raise failure(Status.INVALID_VALUE, call)
            disabled = executable.disabled - {place} if enabled else executable.disabled | {place}
            self._change(executable, executable.source, disabled)

    def graphNodeGetEnabled(self, graphExec: int, graph: int, place: int) -> bool:
        call = "cudaGraphNodeGetEnabled({:#x}, {})", graphExec, place
        with self._lock:
            executable = self._executable(graphExec, call)
            if not can_be_disabled(self._graph(graph, call), place):
                raise failure(Status.INVALID_VALUE, call)
            return place not in executable.disabled

    def _change(self, executable: Executable, source: Graph, disabled: Places) -> None:
        executable.change(source, disabled, without(source, disabled) if disabled else source)
        self.races.watcher.changed(executable)

    def _executable(self, handle: int, call: Call) -> Executable:
        executable = self._executables.get(handle)
        if executable is None:
            raise failure(Status.INVALID_VALUE, call)
        return executable

    def _graph(self, handle: int, call: Call) -> Graph:
        graph = self._graphs.get(handle)
        if graph is not None:
            return graph
        node = self._conditionals.find(handle)
        if node is None:
            raise failure(Status.INVALID_VALUE, call)
        return node.body

    def _can_use(self, device: int, address: int) -> bool:
        """Return whether ``device`` can use the memory at ``address``, which lies on some device."""
        owner = self._memory.owner(address)
        return owner is None or self.canAccess(device, owner.index)

    def _replay(self, executable: Executable, timeline: Timeline) -> None:
        """Run ``executable`` on ``timeline``, which does not capture."""
        # The lock is not held, because the work may be slow while another thread launches its own.
        if self._is_indirect:
            self._perform_graph(executable, timeline)
        else:  # a replay is too short for one more call
            executable.run()
        with self._lock:
            start, end = executable.complete(self._streams.times.start(timeline))
            timeline.ready = end
            if executable.host:
                self._host_uses.add(executable.host, timeline, end)
            if end > start:
                self.devices[timeline.device].activity.append((start, end))
            self.races.watcher.launched(executable, timeline)

    # The driver and NVML of these devices

    def pointerGetDevice(self, ptr: int) -> int:
        owner = self._memory.owner(ptr)
        return -1 if owner is None else owner.index

    def pointerIsPageLocked(self, ptr: int) -> bool:
        with self._lock:
            return self._memory.is_registered(ptr, 1)

    def memoryAt(self, ptr: int) -> tuple[int, int, int] | None:
        """Return the device, the beginning and the end of the memory at ``ptr``; None if no device can reach it.

        The device of page-locked memory of the host is -1.
        """
        with self._lock:
            found = self._memory.range_at(ptr)
        if found is None:
            return None
        owner, begin, end = found
        return -1 if owner is None else owner.index, begin, end

    def memoryBounds(self) -> list[tuple[int, int]]:
        """Return the start and the end of ranges, in which all memory lies that a device can reach."""
        with self._lock:
            return self._memory.bounds()

    def addVariable(self, ptr: int, size: int, device: int) -> None:
        """Treat a global variable of a module as memory of ``device``."""
        with self._lock:
            self._memory.add_variable(ptr, size, self.devices[device])

    def canAccess(self, device: int, owner: int) -> bool:
        """Return whether kernels of ``device`` may use the memory of the device ``owner``."""
        return device == owner or owner in self.devices[device].peers

    def announceStreams(self, ledger: _core.Ledger) -> None:
        """Tell ``ledger`` of every stream that exists, and later of every stream that is created or destroyed."""
        self._ledger = ledger
        for handle, timeline in dict(self._streams.created).items():
            ledger.stream_created(timeline.device, handle)

    def watchRaces(self, detector: _core.RaceDetector | None) -> None:
        with self._lock:
            page_locked = {each.begin: each.end - each.begin for each in self._memory.page_locked.copy()}
            self.races.begin(detector, page_locked)
            self._is_indirect = self.is_late or detector is not None

    def memoryDriver(self) -> _core.Driver:
        return _core.EmulatedDriver([device.memory for device in self.devices], self._driver_streams())

    def _driver_streams(self) -> DriverStreams:
        return DriverStreams(self._streams, self.clock, self.races, self._memory, self._host_uses, self.poison)

    def nvml(self) -> EmulatedNvml:
        return EmulatedNvml(self._of_machine, self.clock)
