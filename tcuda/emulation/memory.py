"""Blocks: memory of an emulated device that the allocator has handed out, owned by the arrays over it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda._process.devices import Device
from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger

if TYPE_CHECKING:
    import numpy.typing as npt

    from tcuda._runtime.emulated import EmulatedRuntime

_runtime = cast("EmulatedRuntime", cuda)
_POISON = 0xFF
"""The value of every byte that no work has written: floating-point numbers are not numbers, and integers are -1."""


class _Borrowed:
    """Memory of a block, for NumPy to make an array of that does not keep the block alive."""

    def __init__(self, block: Block) -> None:
        self.__array_interface__ = block.__array_interface__


class Block:
    """Device memory that is freed when the last array over it dies.

    A NumPy array made from a block has the block as its base, and so have the views of that array. The block therefore
    needs no list of its users: it lives as long as NumPy can reach its memory.

    Args:
        nbytes: The size that is wanted; nothing is allocated for 0.

    Attributes:
        device: The index of the device, which is the device that was current.
        ptr: The address, 0 if the size is 0.
        size: The bytes, which may be more than were asked for. All of them belong to the block.

    Raises:
        OutOfMemoryError: The device has no room for ``nbytes`` bytes.
    """

    __slots__ = ("__weakref__", "_release", "device", "ptr", "size")

    def __init__(self, nbytes: int) -> None:
        self.ptr = 0
        self.device = cuda.getDevice()
        self.size = 0
        if nbytes:
            in_use = ledger()
            self._release = in_use.free
            self.ptr, self.size = in_use.allocate_block(self.device, nbytes, backend.current_stream(self.device).ptr)
            if _runtime.capturing(backend.current_stream):
                # No work is done before the graph is launched. A reader who comes earlier shall notice that.
                ctypes.memset(self.ptr, _POISON, self.size)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "typestr": "|u1", "shape": (self.size,), "data": (self.ptr, False)}

    def host(self) -> npt.NDArray[Any]:
        """Return the bytes as a NumPy array, which keeps the block alive."""
        return np.asarray(self) if self.size else np.empty(0, np.uint8)

    def alias(self) -> npt.NDArray[Any]:
        """Return the bytes as a NumPy array, which does not keep the block alive."""
        return np.asarray(_Borrowed(self)) if self.size else np.empty(0, np.uint8)

    def holds(self, array: npt.NDArray[Any]) -> bool:
        """Return whether ``array`` is a view of this memory."""
        return array.base is not None and self.ptr <= array.ctypes.data < self.ptr + self.size

    def free(self) -> None:
        """Free the memory now, though arrays over it may be alive, for arrays that an error has left unfinished."""
        ptr, self.ptr, self.size = self.ptr, 0, 0
        if ptr:
            self._release(ptr)

    __del__ = finalizer(free)


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
