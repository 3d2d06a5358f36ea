"""Blocks: memory that the runtime has allocated on an emulated device, owned by the arrays over it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._device_index import Device
from tcuda._errors import AcceleratorError, OutOfMemoryError
from tcuda._lazy import cuda, is_initialized
from tcuda._runtime.protocol import STREAM_NON_BLOCKING
from tcuda._status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt


_reclaiming: dict[int, int] = {}
"""For each device, the stream on which dead blocks are freed."""


class Block:
    """Device memory that is freed when the last array over it dies.

    A NumPy array made from a block has the block as its base, and so have the views of that array. The block therefore
    needs no list of its users: it lives as long as NumPy can reach its memory.

    Args:
        nbytes: The size; nothing is allocated for 0.

    Attributes:
        device: The index of the device, which is the one that was current.
        nbytes: The size.
        ptr: The address, 0 if the size is 0.

    Raises:
        OutOfMemoryError: The device has not that much memory left.
    """

    __slots__ = ("__weakref__", "_release", "device", "nbytes", "ptr")

    def __init__(self, nbytes: int) -> None:
        self.ptr = 0
        self.device = cuda.getDevice()
        self.nbytes = nbytes
        if nbytes:
            # The stream comes first: making it may fail, and must not do so with the memory in hand.
            stream = _reclaiming_stream(self.device)
            self._release = cuda.freeAsync, stream
            self.ptr = _allocate(nbytes)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "typestr": "|u1", "shape": (self.nbytes,), "data": (self.ptr, False)}

    def host(self) -> npt.NDArray[Any]:
        """Return the bytes as a NumPy array, which keeps the block alive."""
        return np.asarray(self) if self.nbytes else np.empty(0, np.uint8)

    def holds(self, array: npt.NDArray[Any]) -> bool:
        """Tell whether ``array`` is a view of this memory."""
        return array.base is not None and self.ptr <= array.ctypes.data < self.ptr + self.nbytes

    def free(self) -> None:
        """Free the memory now, though arrays over it may be alive: for those that an error has left unfinished."""
        ptr, self.ptr, self.nbytes = self.ptr, 0, 0
        if ptr:
            free, stream = self._release
            free(ptr, stream)

    # The two questions are bound here because the names of modules may be gone when the interpreter exits.
    def __del__(
        self,
        _exiting: Callable[[], bool] = sys.is_finalizing,
        _initialized: Callable[[], bool] = is_initialized,
    ) -> None:
        # In a forked child the runtime is no longer initialised, and its memory is not the child's to free.
        if not _exiting() and _initialized():
            self.free()


def _reclaiming_stream(device: int) -> int:
    """Return a stream of ``device``, the current one, for frees only.

    A block may die anywhere, in the hands of the garbage collector too. On the default stream its free would spoil
    whatever another stream captures; on the stream it was allocated on it would fail once that is destroyed. A stream
    that blocks nobody and captures nothing is right in any thread, whichever device is current.
    """
    stream = _reclaiming.get(device)
    if stream is None:
        stream = _reclaiming[device] = cuda.streamCreateWithPriority(STREAM_NON_BLOCKING, 0)
    return stream


def _allocate(nbytes: int) -> int:
    try:
        return cuda.mallocAsync(nbytes, cuda.currentStream().ptr)
    except AcceleratorError as error:
        if error.error_code != Status.MEMORY_ALLOCATION:
            raise
    free, total = cuda.memGetInfo()
    raise OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {_size(nbytes)}. GPU {cuda.getDevice()} has a total capacity of "
        f"{_size(total)} of which {_size(free)} is free. "
        + (
            "The emulated device has room for it, but the host has not: close other programs, or allocate less."
            if nbytes <= free
            else f"This process has {_size(total - free)} in use. Drop arrays that are no longer needed, or emulate a "
            "device with more memory: TCUDA_EMULATED_MEMORY, or tcuda.emulation.enable(memory=...)."
        )
    )


def _size(nbytes: int) -> str:
    """Return ``nbytes`` for people to read, rounded and with the units of torch's message."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"


@dataclass(frozen=True)
class MemoryPointer:
    """An address in a block, as ``cupy.cuda.MemoryPointer``.

    Attributes:
        mem: The block, which the pointer keeps alive.
        offset: Bytes from the start of the block.
    """

    mem: Block
    offset: int = 0

    @property
    def ptr(self) -> int:
        """The address."""
        return self.mem.ptr + self.offset

    @property
    def device_id(self) -> int:
        """The index of the device."""
        return self.mem.device

    @property
    def device(self) -> Device:
        """The device."""
        return Device("cuda", self.mem.device)

    def __int__(self) -> int:
        return self.ptr
