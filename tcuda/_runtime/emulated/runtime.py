"""The protocol ``Runtime`` on emulated devices.

An operation runs at once on the host, which is a legal order of any correctly synchronised program, and is *complete*
at a time of the emulated clock; queries, synchronisation and events go by that time. On a stream that captures it is
kept instead, and runs when the graph is launched. What CUDA refuses is refused with the status that CUDA gives on an
H200.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._errors import AcceleratorError, OutOfMemoryError
from tcuda._runtime.emulated import costs
from tcuda._runtime.emulated.clock import CALL
from tcuda._runtime.emulated.device import CAPABILITY, STREAM_PRIORITY_RANGE
from tcuda._runtime.emulated.graph import ExternalRecord, ExternalWait, Node
from tcuda._runtime.emulated.graphs import Graphs
from tcuda._runtime.emulated.nvml import EmulatedNvml
from tcuda._runtime.emulated.pools import MemoryAsyncPool, MemoryPool, PooledMemory
from tcuda._runtime.emulated.streams import DriverStreams
from tcuda._runtime.emulated.thread import DEFAULT_STREAM
from tcuda._runtime.emulated.timeline import Mark, Timeline
from tcuda._runtime.protocol import (
    EVENT_BLOCKING_SYNC,
    EVENT_DISABLE_TIMING,
    EVENT_INTERPROCESS,
    EVENT_RECORD_EXTERNAL,
    EVENT_WAIT_EXTERNAL,
    STREAM_DEFAULT,
    STREAM_LEGACY,
    STREAM_NON_BLOCKING,
    STREAM_PER_THREAD,
)
from tcuda._status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tcuda._runtime.emulated.device import EmulatedDevice
    from tcuda._runtime.emulated.memory import Copy
    from tcuda._runtime.protocol import CurrentStream

_VERSION = 13000
_POOL_UNIT = 512  # what CuPy's pools round sizes up to


class EmulatedRuntime(Graphs):
    """``devices`` emulated devices with ``memory`` bytes each, and one clock."""

    name = "emulated"
    array_module = "tcuda.emulation.xp"
    random_module = "tcuda.emulation.random"
    OutOfMemoryError = OutOfMemoryError
    moreMemory = (
        "Devices are emulated with as much as TCUDA_EMULATED_MEMORY or tcuda.emulation.enable(memory=...) says."
    )
    defaultStream: CurrentStream = DEFAULT_STREAM

    def __init__(self, devices: int, memory: int) -> None:
        super().__init__(devices, memory)
        self._ledger: _core.Ledger | None = None
        # The very methods, so that each call either changes what is current or raises.
        self.currentStream: Callable[..., CurrentStream] = self._thread.current
        self.useStream: Callable[[CurrentStream], None] = self._thread.use
        self.enterStream: Callable[[CurrentStream], None] = self._thread.enter
        self.exitStream: Callable[[], None] = self._thread.leave

    # Devices

    def driverGetVersion(self) -> int:
        return _VERSION

    def runtimeGetVersion(self) -> int:
        return _VERSION

    def visibleDeviceCount(self) -> int:
        return len(self.devices)

    def getDeviceCount(self) -> int:
        return len(self.devices)

    def getDevice(self) -> int:
        return self._thread.device

    def setDevice(self, device: int) -> None:
        self._device(device, f"cudaSetDevice({device})")
        self._thread.device = device

    def deviceSynchronize(self) -> None:
        call = "cudaDeviceSynchronize()"
        with self._lock:
            device = self._thread.device
            for capture in list(self._captures):
                if capture.device == device:
                    raise self._spoil(capture, call)
            self._forbid_unsafe(call)
            self.clock.wait_until(max(stream.ready for stream in self._on(device)))

    def getDeviceProperties(self, device: int) -> Mapping[str, Any]:
        return self._device(device, f"cudaGetDeviceProperties({device})").properties()

    def deviceCanAccessPeer(self, device: int, peerDevice: int) -> int:
        call = f"cudaDeviceCanAccessPeer({device}, {peerDevice})"
        return int(self._device(device, call) is not self._device(peerDevice, call))

    def deviceEnablePeerAccess(self, peerDevice: int) -> None:
        call = f"cudaDeviceEnablePeerAccess({peerDevice})"
        self._device(peerDevice, call)
        device = self.devices[self._thread.device]
        if peerDevice == device.index:
            raise AcceleratorError(Status.PEER_ACCESS_UNSUPPORTED, call)
        if peerDevice in device.peers:
            raise AcceleratorError(Status.PEER_ACCESS_ALREADY_ENABLED, call)
        device.peers.add(peerDevice)

    def deviceDisablePeerAccess(self, peerDevice: int) -> None:
        call = f"cudaDeviceDisablePeerAccess({peerDevice})"
        self._device(peerDevice, call)
        device = self.devices[self._thread.device]
        if peerDevice not in device.peers:
            raise AcceleratorError(Status.PEER_ACCESS_NOT_ENABLED, call)
        device.peers.remove(peerDevice)

    def deviceGetStreamPriorityRange(self) -> tuple[int, int]:
        return STREAM_PRIORITY_RANGE

    def profilerStart(self) -> None:
        pass

    def profilerStop(self) -> None:
        pass

    # Memory

    def memGetInfo(self) -> tuple[int, int]:
        memory = self.devices[self._thread.device].memory
        return memory.limit - memory.used, memory.limit

    def malloc(self, size: int) -> int:
        call = f"cudaMalloc({size})"
        with self._lock:
            self._forbid_unsafe(call)
            return self._allocate(size, call)

    def free(self, ptr: int) -> None:
        call = f"cudaFree({ptr:#x})"
        with self._lock:
            self._forbid_unsafe(call)
            device = self._free(ptr, call)
            if device is not None:
                self.clock.wait_until(max(stream.ready for stream in self._on(device.index)))

    def mallocAsync(self, size: int, stream: int) -> int:
        call = f"cudaMallocAsync({size}, {stream:#x})"
        with self._lock:
            timeline = self._stream(stream, call)
            self._enqueue(timeline, Node("mem alloc", nbytes=size), call)
            ptr = self._allocate(size, call)
            if timeline.capture is not None:
                release = self.devices[self._thread.device].memory.release
                timeline.capture.graph.allocated[ptr] = PooledMemory(ptr, release)
            return ptr

    def freeAsync(self, ptr: int, stream: int) -> None:
        call = f"cudaFreeAsync({ptr:#x}, {stream:#x})"
        with self._lock:
            timeline = self._stream(stream, call)
            if timeline.capture is not None:
                self._enqueue(timeline, Node("mem free", work=lambda: self._free(ptr, call)), call)
                return
            self._free(ptr, call)
            self._enqueue(timeline, Node("mem free"), call)

    def hostRegister(self, ptr: int, size: int, flags: int) -> None:
        call = f"cudaHostRegister({ptr:#x}, {size}, {flags})"
        with self._lock:
            self._forbid_unsafe(call)
            self._memory.register(ptr, size, call)

    def hostUnregister(self, ptr: int) -> None:
        call = f"cudaHostUnregister({ptr:#x})"
        with self._lock:
            self._forbid_unsafe(call)
            self._memory.unregister(ptr, call)

    def memcpy(self, dst: int, src: int, size: int, kind: int) -> None:
        call = f"cudaMemcpy({dst:#x}, {src:#x}, {size}, {kind})"
        with self._lock:
            copy = self._memory.plan_copy(dst, src, size, kind, call)
            self.clock.wait_until(self._run(self._stream(0, call), self._copying(copy), call))

    def memcpyAsync(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        self._copy(dst, src, size, kind, stream, f"cudaMemcpyAsync({dst:#x}, {src:#x}, {size}, {kind}, {stream:#x})")

    def memcpyPeerAsync(self, dst: int, dstDevice: int, src: int, srcDevice: int, size: int, stream: int) -> None:
        call = f"cudaMemcpyPeerAsync({dst:#x}, {dstDevice}, {src:#x}, {srcDevice}, {size}, {stream:#x})"
        target, source = self._device(dstDevice, call), self._device(srcDevice, call)
        if size and (self._memory.owner(dst) is not target or self._memory.owner(src) is not source):
            raise AcceleratorError(Status.INVALID_VALUE, call)
        self._copy(dst, src, size, 3, stream, call)

    def memsetAsync(self, ptr: int, value: int, size: int, stream: int) -> None:
        call = f"cudaMemsetAsync({ptr:#x}, {value}, {size}, {stream:#x})"
        with self._lock:
            fill = self._memory.plan_set(ptr, value, size, call)
            addresses = [ptr] if size else []
            self._run(self._stream(stream, call), Node("memset", costs.kernel(size), fill, addresses, size), call)

    # Streams

    def streamCreateWithPriority(self, flags: int, priority: int) -> int:
        if flags not in (STREAM_DEFAULT, STREAM_NON_BLOCKING):
            raise AcceleratorError(Status.INVALID_VALUE, f"cudaStreamCreateWithPriority({flags}, {priority})")
        least, greatest = STREAM_PRIORITY_RANGE
        with self._lock:
            handle = self._new_handle()
            self._streams[handle] = Timeline(
                handle, self._thread.device, flags, min(least, max(greatest, priority)), ready=self.clock.now()
            )
        if self._ledger is not None:
            self._ledger.stream_created(self._thread.device, handle)
        return handle

    def streamDestroy(self, stream: int) -> None:
        call = f"cudaStreamDestroy({stream:#x})"
        with self._lock:
            if stream in (0, STREAM_LEGACY, STREAM_PER_THREAD):
                raise AcceleratorError(Status.INVALID_RESOURCE_HANDLE, call)
            timeline = self._stream(stream, call)
            if timeline.capture is not None:
                raise self._spoil(timeline.capture, call)
        if self._ledger is not None:
            self._ledger.stream_about_to_be_destroyed(timeline.device, stream)
        with self._lock:
            if self._streams.pop(stream, None) is not None:
                key = timeline.device, timeline.flags
                rest = self._destroyed.setdefault(key, Timeline(stream, *key))
                rest.ready = max(rest.ready, timeline.ready)

    def streamGetFlags(self, stream: int) -> int:
        return self._stream(stream, f"cudaStreamGetFlags({stream:#x})").flags

    def streamGetPriority(self, stream: int) -> int:
        return self._stream(stream, f"cudaStreamGetPriority({stream:#x})").priority

    def streamQuery(self, stream: int) -> int:
        try:
            with self._lock:
                timeline = self._reach(stream, f"cudaStreamQuery({stream:#x})")
                return self._status(timeline.ready)
        except AcceleratorError as error:
            return error.error_code

    def streamSynchronize(self, stream: int) -> None:
        with self._lock:
            self.clock.wait_until(self._reach(stream, f"cudaStreamSynchronize({stream:#x})").ready)

    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        call = f"cudaStreamWaitEvent({stream:#x}, {event:#x}, {flags})"
        if flags not in (0, EVENT_WAIT_EXTERNAL):
            raise AcceleratorError(Status.INVALID_VALUE, call)
        with self._lock:
            timeline, mark = self._stream(stream, call), self._event(event, call)
            if mark.capture is not None:
                self._wait_in_capture(timeline, mark, mark.capture, call)
            elif timeline.capture is not None and flags == EVENT_WAIT_EXTERNAL:
                timeline.capture.add(timeline.handle, ExternalWait(mark))
            elif timeline.capture is not None and mark.time is not None:
                raise self._spoil(timeline.capture, call, Status.STREAM_CAPTURE_ISOLATION)
            elif mark.time is not None:
                timeline.ready = max(timeline.ready, mark.time)

    # Events

    def eventCreateWithFlags(self, flags: int) -> int:
        known = EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING | EVENT_INTERPROCESS
        timed_interprocess = flags & EVENT_INTERPROCESS and not flags & EVENT_DISABLE_TIMING
        if flags & ~known or timed_interprocess:
            raise AcceleratorError(Status.INVALID_VALUE, f"cudaEventCreateWithFlags({flags})")
        with self._lock:
            handle = self._new_handle()
            self._events[handle] = Mark(handle, self._thread.device, flags)
            return handle

    def eventDestroy(self, event: int) -> None:
        with self._lock:
            self._event(event, f"cudaEventDestroy({event:#x})")
            del self._events[event]

    def eventRecord(self, event: int, stream: int) -> None:
        self._record(event, stream, f"cudaEventRecord({event:#x}, {stream:#x})", external=False)

    def eventRecordWithFlags(self, event: int, stream: int, flags: int) -> None:
        call = f"cudaEventRecordWithFlags({event:#x}, {stream:#x}, {flags})"
        with self._lock:
            external = flags == EVENT_RECORD_EXTERNAL
            if flags not in (0, EVENT_RECORD_EXTERNAL):
                raise AcceleratorError(Status.INVALID_VALUE, call)
            if external and self._stream(stream, call).capture is None:
                raise AcceleratorError(Status.ILLEGAL_STATE, call)
            self._record(event, stream, call, external=external)

    def eventQuery(self, event: int) -> int:
        try:
            with self._lock:
                mark = self._reach_event(event, f"cudaEventQuery({event:#x})")
                return self._status(mark.time or 0)
        except AcceleratorError as error:
            return error.error_code

    def eventSynchronize(self, event: int) -> None:
        with self._lock:
            self.clock.wait_until(self._reach_event(event, f"cudaEventSynchronize({event:#x})").time or 0)

    def eventElapsedTime(self, start: int, end: int) -> float:
        call = f"cudaEventElapsedTime({start:#x}, {end:#x})"
        with self._lock:
            first, last = self._event(start, call), self._event(end, call)
            if first.capture or last.capture:
                raise AcceleratorError(Status.CAPTURED_EVENT, call)
            if not (first.timed and last.timed) or first.device != last.device:
                raise AcceleratorError(Status.INVALID_RESOURCE_HANDLE, call)
            if first.time is None or last.time is None:
                raise AcceleratorError(Status.INVALID_RESOURCE_HANDLE, call)
            if max(first.time, last.time) > self.clock.now():
                raise AcceleratorError(Status.NOT_READY, call)
            return (last.time - first.time) / 1e6

    def ipcGetEventHandle(self, event: int) -> bytes:
        call = f"cudaIpcGetEventHandle({event:#x})"
        if not self._event(event, call).interprocess:
            raise AcceleratorError(Status.INVALID_RESOURCE_HANDLE, call)
        return f"tcuda:{os.getpid()}:{event}".encode().ljust(64, b"\0")

    def ipcOpenEventHandle(self, handle: bytes) -> int:
        # Emulated devices live in one process, and CUDA does not open a handle in the process that made it.
        own = handle.startswith(f"tcuda:{os.getpid()}:".encode())
        status = Status.DEVICE_UNINITIALIZED if own else Status.MAP_BUFFER_OBJECT_FAILED
        raise AcceleratorError(status, "cudaIpcOpenEventHandle()")

    # Beyond the CUDA runtime

    def pointerGetDevice(self, ptr: int) -> int:
        owner = self._memory.owner(ptr)
        return -1 if owner is None else owner.index

    def sleep(self, cycles: int, stream: int) -> None:
        call = f"tcuda_spin({cycles}, {stream:#x})"
        with self._lock:
            duration = max(0, cycles) * 1_000_000 // costs.CLOCK_KHZ
            self._enqueue(self._launchable(stream, call), Node("tcuda_spin", duration), call)

    def launch(
        self,
        work: Callable[[], object],
        nbytes: int,
        flops: int = 0,
        *,
        name: str = "kernel",
        addresses: Iterable[int] = (),
    ) -> None:
        """Run ``work`` as a kernel on the current stream; if that captures, at every launch of the graph instead.

        Args:
            work: What it does to the memory. It must keep no memory alive, for a graph would then do so.
            nbytes: How much memory it moves.
            flops: How many floating-point operations it does.
            name: What it is called in a drawing of the graph.
            addresses: The device memory that it reads and writes.
        """
        call = "cudaLaunchKernel()"
        kernel = Node(name, costs.kernel(nbytes, flops), work, addresses, nbytes)
        with self._lock:
            timeline = self._launchable(self.currentStream().ptr, call)
            if timeline.capture is not None:
                self._enqueue(timeline, kernel, call)
                return
        # Not under the lock: the work may free arrays, or be slow while another thread launches its own.
        work()
        with self._lock:
            self._enqueue(timeline, kernel, call)

    def supportedArchs(self) -> list[int]:
        major, minor = CAPABILITY
        return [10 * major + minor]

    def blasHandle(self) -> int:
        return self._library_handle("cublas")

    def solverHandle(self) -> int:
        return self._library_handle("cusolver")

    def memoryDriver(self) -> _core.Driver:
        return _core.HostDriver([device.memory for device in self.devices], DriverStreams(self))

    def memorySource(self, backend: str, ledger: _core.Ledger) -> _core.Source:
        if backend == "cudaMallocAsync":
            return _core.PythonSource(MemoryAsyncPool(self.devices), reports_segments=False, unit=_POOL_UNIT)
        return _core.PythonSource(MemoryPool(ledger), reports_segments=True, unit=_POOL_UNIT)

    def useLedger(self, ledger: _core.Ledger) -> None:
        self._ledger = ledger  # emulated arrays ask for it themselves
        for handle, timeline in self._streams.items():
            ledger.stream_created(timeline.device, handle)

    def nvml(self) -> EmulatedNvml:
        return EmulatedNvml(self.devices, self.clock)

    # For the allocator

    def stream_of(self, device: int, handle: int) -> Timeline:
        """Return the stream of ``handle``; of the default streams, which every device has, that of ``device``."""
        return self._stream(handle, f"cudaStreamQuery({handle:#x})", device)

    def streams_of(self, device: int) -> list[Timeline]:
        """Return every stream of ``device``."""
        with self._lock:
            return self._on(device)

    # Below the protocol

    def _launchable(self, handle: int, call: str) -> Timeline:
        timeline = self._stream(handle, call)
        if timeline.device != self._thread.device:
            raise AcceleratorError(Status.INVALID_RESOURCE_HANDLE, call)
        return timeline

    def _record(self, event: int, stream: int, call: str, *, external: bool) -> None:
        with self._lock:
            mark, timeline = self._event(event, call), self._stream(stream, call)
            if mark.device != timeline.device:
                raise AcceleratorError(Status.INVALID_RESOURCE_HANDLE, call)
            if timeline.capture is not None:
                if external:
                    timeline.capture.add(timeline.handle, ExternalRecord(mark))
                else:
                    mark.time, mark.capture = None, timeline.capture
                    mark.places = timeline.capture.seen_by(timeline.handle)
            else:
                mark.time, mark.capture = self._enqueue(timeline, Node("event record"), call), None

    def _reach_event(self, event: int, call: str) -> Mark:
        mark = self._event(event, call)
        if mark.capture is not None:
            if not mark.capture.active:
                raise AcceleratorError(Status.INVALID_VALUE, call)
            raise self._spoil(mark.capture, call, Status.CAPTURED_EVENT)
        self._forbid_unsafe(call)
        return mark

    def _status(self, ready: int) -> int:
        return Status.SUCCESS if ready <= self.clock.advance(CALL) else Status.NOT_READY

    def _allocate(self, size: int, call: str) -> int:
        ptr = self.devices[self._thread.device].memory.allocate(size)
        if size and not ptr:
            raise AcceleratorError(Status.MEMORY_ALLOCATION, call)
        return ptr

    def _copy(self, dst: int, src: int, size: int, kind: int, stream: int, call: str) -> None:
        with self._lock:
            copy = self._memory.plan_copy(dst, src, size, kind, call)
            end = self._run(self._stream(stream, call), self._copying(copy), call)
            if copy.host_waits:
                self.clock.wait_until(end)

    def _copying(self, copy: Copy) -> Node:
        addresses = [ptr for ptr in (copy.dst, copy.src) if copy.size and self._memory.owner(ptr) is not None]
        return Node("memcpy", copy.duration, copy.make, addresses, copy.size)

    def _free(self, ptr: int, call: str) -> EmulatedDevice | None:
        """Free memory and return the device it was on, None if there is nothing to free now."""
        graphs = [*self._graphs.values(), *(capture.graph for capture in self._captures)]
        graphs += [executable.graph for executable in self._executables.values()]
        if not ptr or any(ptr in graph.allocated for graph in graphs):
            return None
        return self._memory.free(ptr, call)

    def _library_handle(self, library: str) -> int:
        key = (library, self._thread.device)
        if key not in self._thread.handles:
            self._thread.handles[key] = self._new_handle()
        return self._thread.handles[key]
