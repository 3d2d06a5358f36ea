"""Device memory, pointers to it, and the allocators (``cupy.cuda.memory``)."""

from __future__ import annotations

from typing import Any

from tcuda._base.errors import OutOfMemoryError
from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda.emulation.cuda import runtime
from tcuda.emulation.cuda.allocators import alloc, get_allocator, set_allocator
from tcuda.emulation.cuda.memory_pool import MemoryPool, PooledMemory
from tcuda.emulation.cuda.raw_memory import ManagedMemory, Memory, malloc_managed
from tcuda.emulation.devices.memory import Block as BaseMemory
from tcuda.emulation.devices.memory import ForeignBlock, MemoryPointer
from tcuda.emulation.devices.runtime_error import with_cupys_error


class MemoryAsync(BaseMemory):
    """Memory that ``cudaMallocAsync`` allocates in the order of a stream (``cupy.cuda.MemoryAsync``).

    Args:
        size: The number of bytes.
        stream: The stream, or its handle.

    Raises:
        CUDARuntimeError: The device has no room.
    """

    __module__ = "tcuda.emulation.cuda"
    __slots__ = ("_stream",)

    def __init__(self, size: int, stream: Any) -> None:
        self.size = self.requested = size
        self.device = cuda.getDevice()
        self._stream = stream if isinstance(stream, int) else stream.ptr
        self.ptr = with_cupys_error(cuda.mallocAsync)(size, self._stream) if size else 0

    def free(self) -> None:
        """Free the memory in the order of the stream."""
        ptr, self.ptr = self.ptr, 0
        if ptr:
            cuda.freeAsync(ptr, self._stream)

    __del__ = finalizer(free)


class UnownedMemory(ForeignBlock):
    """Memory that another object owns (``cupy.cuda.UnownedMemory``).

    Args:
        ptr: The address.
        size: The number of bytes.
        owner: The object that keeps the memory alive.
        device_id: The index of the device; the device of the address if negative.
    """

    __module__ = "tcuda.emulation.cuda"
    __slots__ = ()

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        if device_id < 0:
            device_id = runtime.pointerGetAttributes(ptr).device if ptr else cuda.getDevice()
        super().__init__(ptr, size, device_id, owner)


def malloc_async(size: int) -> MemoryPointer:
    """Return new memory that is allocated in the order of the current stream."""
    return MemoryPointer(MemoryAsync(size, backend.current_stream()), 0)


__all__ = [
    "BaseMemory",
    "ManagedMemory",
    "Memory",
    "MemoryAsync",
    "MemoryPointer",
    "MemoryPool",
    "OutOfMemoryError",
    "PooledMemory",
    "UnownedMemory",
    "alloc",
    "get_allocator",
    "malloc_async",
    "malloc_managed",
    "set_allocator",
]
