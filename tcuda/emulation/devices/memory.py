"""Blocks: memory of an emulated device, which the allocator has handed out, and which the arrays in it own."""

from __future__ import annotations

import ctypes
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from tcuda import _core
from tcuda._base.user_code import calling_place
from tcuda._process import poison
from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import MEMCPY_DEFAULT, MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE
from tcuda.emulation.devices.device import Device

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tcuda.emulation.runtime import EmulatedRuntime

    Address: TypeAlias = int | ctypes.c_void_p

_runtime = cast("EmulatedRuntime", cuda)
_POISON = 0xFF
"""The value of bytes that no work has written: floating-point numbers are then NaN, and signed integers are -1."""

allocators: list[Callable[[int], MemoryPointer]] = []
"""The function that allocates the memory of new arrays, if the program has chosen one; else arrays make a block."""


managed: dict[int, int] = {}
"""The sizes of all managed memory, by its address."""


def is_managed(ptr: int) -> bool:
    """Return whether the address ``ptr`` is in managed memory, which the host may use, too."""
    return any(start <= ptr < start + size for start, size in list(managed.items()))


class _Borrowed:
    """The memory of a block as an object from which NumPy makes an array that does not keep the block alive."""

    def __init__(self, block: Block) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (block.size,), "data": (block.ptr, False)}


class Block(_core.OwnedMemory):
    """Device memory that is freed when the last array in it is deleted; :func:`allocate` makes a block.

    The base of a NumPy array made from a block is the block, and views of this array keep the array alive. So the block
    needs no list of its users: the block lives as long as NumPy can reach its memory.
    """

    __slots__ = ("__weakref__",)

    @property
    def device_id(self) -> int:
        """The index of the device, under CuPy's name."""
        return self.device

    def __int__(self) -> int:
        return self.ptr

    def host(self) -> npt.NDArray[Any]:
        """Return the bytes as a NumPy array, which keeps the block alive."""
        buffer: Any = self  # NumPy's types know no buffers of other classes
        return np.ndarray((self.size,), np.uint8, buffer) if self.size else np.empty(0, np.uint8)

    def alias(self) -> npt.NDArray[Any]:
        """Return the bytes as a NumPy array, which does not keep the block alive."""
        return np.asarray(_Borrowed(self)) if self.size else np.empty(0, np.uint8)

    def holds(self, array: npt.NDArray[Any]) -> bool:
        """Return whether ``array`` is a view of this memory."""
        base: Any = array.base
        if base is None:
            return False
        if base is self or getattr(base, "base", None) is self:
            return True
        return self.ptr <= array.ctypes.data < self.ptr + self.size


def _forget(block: Block) -> None:
    unwritten = _runtime.contents.unwritten
    if unwritten is not None and block.ptr:
        unwritten.freed(block.ptr)


class _MarkedBlock(Block):
    """A block that no work uses when nobody refers to it any more, so that its marks are not needed any more."""

    __slots__ = ()

    __del__ = finalizer(_forget)


def allocate(nbytes: int) -> Block:
    """Return a block on the current device for use on the current stream; a block of 0 bytes allocates nothing.

    Raises:
        OutOfMemoryError: The device has no room for ``nbytes`` bytes.
    """
    device = _runtime.thread.device
    stream = backend.current_stream(device).ptr
    unwritten = _runtime.contents.unwritten
    deferred = _runtime.defers(backend.current_stream)
    kind = Block if unwritten is None or deferred else _MarkedBlock
    block = _core.allocate_memory(kind, ledger(), device, nbytes, stream)
    if nbytes and deferred:
        # The work that writes the memory is done later. An earlier reader must see that the memory has no contents.
        value = poison.in_use()
        _runtime.poison(block.ptr, block.requested, _POISON if value is None else value, stream)
    elif nbytes and unwritten is not None:
        unwritten.given(block.ptr, block.requested, calling_place())
    return block


def note_given(ptr: int, size: int) -> None:
    """Take note that a pool of the program gives out memory for the current stream, with unwritten contents."""
    if _runtime.contents.unwritten is not None:
        _runtime.poison(ptr, size, _POISON, backend.current_stream().ptr)


class ForeignBlock(Block):
    """Memory that the ledger has not allocated, like ``cupy.cuda.UnownedMemory``.

    Such memory is a global variable of a module of kernels, or belongs to another process.

    Args:
        ptr: The address.
        size: The size in bytes.
        device: The index of the device.
        owner: The object that keeps the memory alive.

    Attributes:
        owner: The object that keeps the memory alive.
    """

    __slots__ = ("owner",)

    def __init__(self, ptr: int, size: int, device: int, owner: object) -> None:
        self.ptr = ptr
        self.size = self.requested = size
        self.device = device
        self.owner = owner

    def free(self) -> None:
        """Do nothing: the memory belongs to its owner."""


@dataclass(frozen=True)
class MemoryPointer:
    """An address in a block, like ``cupy.cuda.MemoryPointer``.

    Attributes:
        mem: The block, which the pointer keeps alive.
        offset: The number of bytes from the start of the block.
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
        return Device(self.mem.device)

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + operator.index(offset))

    __radd__ = __add__

    def __sub__(self, offset: int) -> MemoryPointer:
        return self + -operator.index(offset)

    def copy_from(self, mem: MemoryPointer | Address, size: int) -> None:
        """Copy ``size`` bytes from ``mem``, a pointer to a device or an address of the host."""
        _runtime.memcpy(self.ptr, _address(mem), size, MEMCPY_DEFAULT)

    def copy_from_async(self, mem: MemoryPointer | Address, size: int, stream: Any = None) -> None:
        """Copy as :meth:`copy_from`, on ``stream`` or else on the current stream."""
        _runtime.memcpyAsync(self.ptr, _address(mem), size, MEMCPY_DEFAULT, _handle(stream))

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy ``size`` bytes from ``src``, which points to a device."""
        _runtime.memcpy(self.ptr, src.ptr, size, MEMCPY_DEFAULT)

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        """Copy as :meth:`copy_from_device`, on ``stream`` or else on the current stream."""
        _runtime.memcpyAsync(self.ptr, src.ptr, size, MEMCPY_DEFAULT, _handle(stream))

    def copy_from_host(self, mem: Address, size: int) -> None:
        """Copy ``size`` bytes from the address ``mem`` of the host."""
        _runtime.memcpy(self.ptr, _address(mem), size, MEMCPY_HOST_TO_DEVICE)

    def copy_from_host_async(self, mem: Address, size: int, stream: Any = None) -> None:
        """Copy as :meth:`copy_from_host`, on ``stream`` or else on the current stream."""
        _runtime.memcpyAsync(self.ptr, _address(mem), size, MEMCPY_HOST_TO_DEVICE, _handle(stream))

    def copy_to_host(self, mem: Address, size: int) -> None:
        """Copy ``size`` bytes to the address ``mem`` of the host."""
        _runtime.memcpy(_address(mem), self.ptr, size, MEMCPY_DEVICE_TO_HOST)

    def copy_to_host_async(self, mem: Address, size: int, stream: Any = None) -> None:
        """Copy as :meth:`copy_to_host`, on ``stream`` or else on the current stream."""
        _runtime.memcpyAsync(_address(mem), self.ptr, size, MEMCPY_DEVICE_TO_HOST, _handle(stream))

    def memset(self, value: int, size: int) -> None:
        """Set ``size`` bytes to ``value``."""
        _runtime.memsetAsync(self.ptr, value, size, 0)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """Set bytes as :meth:`memset`, on ``stream`` or else on the current stream."""
        _runtime.memsetAsync(self.ptr, value, size, _handle(stream))


def _address(memory: MemoryPointer | Address) -> int:
    if isinstance(memory, MemoryPointer):
        return memory.ptr
    return (memory.value or 0) if isinstance(memory, ctypes.c_void_p) else operator.index(memory)


def _handle(stream: Any) -> int:
    """Return the handle of ``stream``; that of the current stream if None."""
    handle: int = (backend.current_stream() if stream is None else stream).ptr
    return handle
