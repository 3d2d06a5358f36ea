"""The calls for memory of devices, for page-locked memory of the host, and for memory of other processes."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from tcuda._base.statuses import Status
from tcuda._base.user_code import calling_place
from tcuda._runtime.protocol import IPC_LAZY_ENABLE_PEER_ACCESS
from tcuda.emulation.runtime.allocation import Allocation
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.graphs import Node
from tcuda.emulation.runtime.imports import Imports

if TYPE_CHECKING:
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.devices import EmulatedDevice
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.operations import Operations
    from tcuda.emulation.runtime.timeline import Timeline
    from tcuda.emulation.runtime.work import Work


class MemoryCalls:
    """The calls for memory.

    Args:
        machine: The state of the devices.
        work: Does work on new memory.
        operations: Adds operations to streams.
    """

    def __init__(self, machine: Machine, work: Work, operations: Operations) -> None:
        self._lock = machine.lock
        self._clock = machine.clock
        self._races = machine.races
        self._contents = machine.contents
        self._devices = machine.devices
        self._thread = machine.thread
        self._captures = machine.captures
        self._streams = machine.streams
        self._memory = machine.memory
        self._of_graphs: WeakValueDictionary[int, Allocation] = WeakValueDictionary()
        """The memory that graphs have allocated and keep, by address."""
        self._imports = Imports(machine.devices)
        self._work = work
        self._operations = operations

    # Memory of devices

    def memGetInfo(self) -> tuple[int, int]:
        memory = self._devices[self._thread.device].memory
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
                self._clock.wait_until(self._streams.ready(device.index))
                self._races.watcher.device_finished(device.index)

    def mallocAsync(self, size: int, stream: int) -> int:
        call = "cudaMallocAsync({}, {:#x})", size, stream
        with self._lock:
            timeline = self._streams.find(stream, call)
            self._operations.enqueue(timeline, Node("mem alloc", nbytes=size, kind="mem_alloc"), call)
            ptr = self._allocate(size, stream, call, exportable=False)
            if timeline.capture is not None:
                release = self._devices[self._thread.device].memory.release
                kept = self._of_graphs[ptr] = Allocation(ptr, release)
                timeline.capture.graph.allocated.append(kept)
            return ptr

    def freeAsync(self, ptr: int, stream: int) -> None:
        call = "cudaFreeAsync({:#x}, {:#x})", ptr, stream
        with self._lock:
            timeline = self._streams.find(stream, call)
            if timeline.capture is not None:
                node = Node("mem free", work=lambda: self._free(ptr, call), kind="mem_free")
                self._operations.enqueue(timeline, node, call)
                return
            self._free(ptr, call, timeline)
            self._operations.enqueue(timeline, Node("mem free"), call)

    def _allocate(self, size: int, stream: int, call: Call, *, exportable: bool = True) -> int:
        ptr = self._devices[self._thread.device].memory.allocate(size, exportable)
        if size and not ptr:
            raise failure(Status.MEMORY_ALLOCATION, call)
        self._races.watcher.allocated(ptr, size, self._thread.device, stream)
        if ptr and self._contents.unwritten is not None:
            self._contents.unwritten.given(ptr, size, calling_place())
        return ptr

    def _free(self, ptr: int, call: Call, timeline: Timeline | None = None) -> EmulatedDevice | None:
        """Free memory, in the order of a stream or at once, and return its device.

        The result is None for a null pointer and for memory that a graph keeps.
        """
        if not ptr or ptr in self._of_graphs:
            return None
        block = self._memory.block_from(ptr) if self._races.watcher.follows else None
        device = self._memory.free(ptr, call)
        if block is not None:
            self._races.watcher.freed(*block, timeline)
        return device

    def poison(self, ptr: int, size: int, value: int, stream: int) -> None:
        """Set all bytes of memory that was allocated for ``stream`` to ``value``."""
        fill = functools.partial(ctypes.memset, ptr, value, size)
        unwritten = self._contents.unwritten
        if unwritten is None:
            self._work.begin_memory(fill, stream)
            return
        line = calling_place()

        def poison() -> None:
            fill()
            unwritten.given(ptr, size, line)

        self._work.begin_memory(poison, stream)

    def expose(self, ptr: int, size: int, stream: int) -> None:
        """Let memory that was allocated for ``stream`` count as written."""
        if self._contents.unwritten is not None:
            self._work.begin_memory(functools.partial(self._contents.unwritten.forget, ptr, size), stream)

    # Page-locked memory

    def hostRegister(self, ptr: int, size: int, flags: int) -> None:
        call = "cudaHostRegister({:#x}, {}, {})", ptr, size, flags
        with self._lock:
            self._captures.forbid_unsafe(call)
            self._memory.register(ptr, size, call)
            self._races.watcher.registered(ptr, size)

    def hostUnregister(self, ptr: int) -> None:
        call = "cudaHostUnregister({:#x})", ptr
        with self._lock:
            self._captures.forbid_unsafe(call)
            size = self._memory.unregister(ptr, call)
            self._races.watcher.unregistered(ptr, size)

    # Memory of other processes

    def ipcGetMemHandle(self, ptr: int) -> bytes:
        with self._lock:
            block = None if self._contents.unwritten is None else self._memory.block_from(ptr)
            if block is not None and self._contents.unwritten is not None:
                self._contents.unwritten.forget(*block)
            return self._imports.handle_of(ptr, ("cudaIpcGetMemHandle({:#x})", ptr))

    def ipcOpenMemHandle(self, handle: bytes, flags: int = IPC_LAZY_ENABLE_PEER_ACCESS) -> int:
        call = "cudaIpcOpenMemHandle({})", flags
        if flags != IPC_LAZY_ENABLE_PEER_ACCESS:
            raise failure(Status.INVALID_VALUE, call)
        with self._lock:
            return self._imports.open(handle, self._devices[self._thread.device], call)

    def ipcCloseMemHandle(self, ptr: int) -> None:
        with self._lock:
            block = self._memory.block_from(ptr) if self._races.watcher.follows else None
            closed = self._imports.close(ptr, ("cudaIpcCloseMemHandle({:#x})", ptr))
            if closed and block is not None:
                self._races.watcher.unmapped(*block)

    # Questions about addresses

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
            self._memory.add_variable(ptr, size, self._devices[device])
