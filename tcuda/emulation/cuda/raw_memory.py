"""Memory that no pool keeps."""

from __future__ import annotations

from tcuda._process.exit import finalizer
from tcuda._process.lazy import cuda
from tcuda.emulation.devices.memory import Block, MemoryPointer
from tcuda.emulation.devices.runtime_error import with_cupys_error


class Memory(Block):
    """Memory that ``cudaMalloc`` allocates on the current device, and that no pool keeps (``cupy.cuda.Memory``).

    Args:
        size: The number of bytes.

    Raises:
        CUDARuntimeError: The device has no room.
    """

    __module__ = "tcuda.emulation.cuda"
    __slots__ = ()

    def __init__(self, size: int) -> None:
        self.size = self.requested = size
        self.device = cuda.getDevice()
        self.ptr = with_cupys_error(cuda.malloc)(size) if size else 0

    def free(self) -> None:
        """Free the memory."""
        ptr, self.ptr = self.ptr, 0
        if ptr:
            cuda.free(ptr)

    __del__ = finalizer(free)


def malloc(size: int) -> MemoryPointer:
    """Return new memory of ``cudaMalloc``, whose free waits for the device."""
    return MemoryPointer(Memory(size), 0)
