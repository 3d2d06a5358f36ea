"""Memory that no pool keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda._process.exit import finalizer
from tcuda._process.lazy import cuda
from tcuda.emulation.devices.memory import Block, MemoryPointer, managed
from tcuda.emulation.devices.runtime_error import CUDARuntimeError, with_cupys_error

if TYPE_CHECKING:
    from tcuda.emulation.devices.device import Device

_ADVICE = range(1, 7)
_INVALID_DEVICE = -2


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


class ManagedMemory(Memory):
    """Memory that the device and the host can use (``cupy.cuda.ManagedMemory``).

    On an emulated device, such memory takes room on the device, like other memory. So the memory never moves, and a
    device cannot have more managed memory than it has room.

    Args:
        size: The number of bytes.

    Raises:
        CUDARuntimeError: The device has no room.
    """

    __module__ = "tcuda.emulation.cuda"
    __slots__ = ()

    def __init__(self, size: int) -> None:
        super().__init__(size)
        if size:
            managed[self.ptr] = size

    def prefetch(self, stream: Any, *, device_id: int = _INVALID_DEVICE) -> None:
        """Do nothing, because the memory never moves.

        Args:
            stream: The stream that would move the memory.
            device_id: The device to which the memory would move.
        """

    def advise(self, advise: int, dev: Device) -> None:
        """Do nothing, because the memory never moves.

        Args:
            advise: The advice, such as ``cupy.cuda.runtime.cudaMemAdviseSetReadMostly``.
            dev: The device that the advice is about.

        Raises:
            CUDARuntimeError: ``advise`` is no advice (1).
        """
        if advise not in _ADVICE:
            raise CUDARuntimeError(Status.INVALID_VALUE)

    def free(self) -> None:
        """Free the memory."""
        managed.pop(self.ptr, None)
        super().free()

    __del__ = finalizer(free)


def malloc_managed(size: int) -> MemoryPointer:
    """Return new memory that the device and the host can use (``cupy.cuda.malloc_managed``)."""
    return MemoryPointer(ManagedMemory(size), 0)


def malloc(size: int) -> MemoryPointer:
    """Return new memory of ``cudaMalloc``, whose free waits for the device."""
    return MemoryPointer(Memory(size), 0)
