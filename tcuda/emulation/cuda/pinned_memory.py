"""Page-locked memory of the host (``cupy.cuda.pinned_memory``)."""

from __future__ import annotations

import ctypes
import functools
import operator
import threading
from typing import TYPE_CHECKING, Any, cast

from tcuda import _core
from tcuda._base.statuses import Status
from tcuda._process.exit import finalizer
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda.emulation.cuda import runtime
from tcuda.emulation.devices.runtime_error import CUDARuntimeError

if TYPE_CHECKING:
    from collections.abc import Callable

_UNIT = 512


class PinnedMemory:
    """Page-locked memory of the host (``cupy.cuda.PinnedMemory``).

    Args:
        size: The number of bytes.
        flags: The flags of ``cudaHostAlloc``.

    Attributes:
        ptr: The address; 0 if the size is 0.
        size: The number of bytes.
    """

    __module__ = "tcuda.emulation.cuda"

    ptr: int = 0

    def __init__(self, size: int, flags: int = 0) -> None:
        self.size = size
        self.ptr = runtime.hostAlloc(size, flags) if size > 0 else 0

    def _free(self) -> None:
        ptr, self.ptr = self.ptr, 0
        if ptr:
            runtime.freeHost(ptr)

    __del__ = finalizer(_free)

    def __int__(self) -> int:
        return self.ptr


class PinnedMemoryPointer:
    """An address in page-locked memory, which has the buffer protocol (``cupy.cuda.PinnedMemoryPointer``).

    Args:
        mem: The memory, which the pointer keeps alive.
        offset: The number of bytes from the start of the memory.

    Attributes:
        mem: The memory.
        ptr: The address.
    """

    __module__ = "tcuda.emulation.cuda"

    mem: Any
    ptr: int

    def __new__(cls, mem: Any, offset: int) -> PinnedMemoryPointer:
        """Return an array of ctypes, because Python's own classes have no buffer protocol before Python 3.12."""
        pointer: Any = _array_of(mem.size - offset).from_address(mem.ptr + offset)
        pointer.mem, pointer.ptr = mem, mem.ptr + offset
        return cast("PinnedMemoryPointer", pointer)

    def __init__(self, mem: Any, offset: int) -> None:
        """Set no elements, as an array of ctypes would."""

    def size(self) -> int:
        """Return the number of bytes from the address to the end of the memory."""
        return int(self.mem.size) - (self.ptr - int(self.mem.ptr))

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> PinnedMemoryPointer:
        return PinnedMemoryPointer(self.mem, self.ptr - self.mem.ptr + operator.index(offset))

    __radd__ = __add__

    def __sub__(self, offset: int) -> PinnedMemoryPointer:
        return self + -operator.index(offset)


@functools.lru_cache(maxsize=256)
def _array_of(size: int) -> Any:
    """Return the class of the pointers to ``size`` bytes."""
    return type("PinnedMemoryPointer", (PinnedMemoryPointer, ctypes.c_byte * size), {"__new__": ctypes.Array.__new__})


class PooledPinnedMemory(PinnedMemory):
    """Page-locked memory that goes back to its pool.

    Args:
        mem: The memory that the pool keeps.
        give_back: The function that returns the memory to the pool.
    """

    def __init__(self, mem: PinnedMemory, give_back: Callable[[PinnedMemory], None]) -> None:
        self.ptr = mem.ptr
        self.size = mem.size
        self.mem = mem
        self._give_back = give_back

    def free(self) -> None:
        """Give the memory back to the pool."""
        ptr, self.ptr, self.size = self.ptr, 0, 0
        if ptr:
            self._give_back(self.mem)

    __del__ = _core.finalizing(free)  # the pool makes no call of CUDA


def _malloc(size: int) -> PinnedMemoryPointer:
    return PinnedMemoryPointer(PinnedMemory(size, runtime.hostAllocPortable), 0)


class PinnedMemoryPool:
    """A pool that keeps freed page-locked memory for the same size (``cupy.cuda.PinnedMemoryPool``).

    Args:
        allocator: The function that allocates for the pool.
    """

    __module__ = "tcuda.emulation.cuda"

    def __init__(self, allocator: Callable[[int], PinnedMemoryPointer] = _malloc) -> None:
        self._allocate = allocator
        self._spare: dict[int, list[PinnedMemory]] = {}
        self._lock = threading.RLock()

    def malloc(self, size: int) -> PinnedMemoryPointer:
        """Return a pointer to memory of at least ``size`` bytes: a power of two, 512 or more.

        If the runtime refuses the memory, the unused memory of the pool is freed first.
        """
        size = operator.index(size)  # NumPy's integers have no bit_length().
        if not size:
            return PinnedMemoryPointer(PinnedMemory(0), 0)
        whole = max(_UNIT, 1 << (size - 1).bit_length())
        with self._lock:
            spare = self._spare.get(whole)
            memory = spare.pop() if spare else self._new(whole)
        return PinnedMemoryPointer(PooledPinnedMemory(memory, self._take_back), 0)

    def _new(self, size: int) -> PinnedMemory:
        try:
            memory: PinnedMemory = self._allocate(size).mem
        except CUDARuntimeError as error:
            if error.status != Status.MEMORY_ALLOCATION:
                raise
            self.free_all_blocks()
            memory = self._allocate(size).mem
        return memory

    def _take_back(self, memory: PinnedMemory) -> None:
        with self._lock:
            self._spare.setdefault(memory.size, []).append(memory)

    def free_all_blocks(self) -> None:
        """Free the memory that is not in use."""
        with self._lock:
            self._spare.clear()

    def n_free_blocks(self) -> int:
        """Return the number of blocks that are not in use."""
        return sum(map(len, list(self._spare.values())))


def _from_tcuda(size: int) -> PinnedMemoryPointer:
    """Return page-locked memory of tcuda's allocator, which counts it (``tcuda.host_memory_stats``)."""
    return PinnedMemoryPointer(_core.allocate_page_locked(ledger(), size), 0)


default_pool = PinnedMemoryPool()
_allocator: Callable[[int], PinnedMemoryPointer] = _from_tcuda


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    """Return CuPy's pool of page-locked memory, which a program can choose instead of tcuda's allocator."""
    return default_pool


def alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    """Return page-locked memory of ``size`` bytes."""
    return _allocator(size)


def set_pinned_memory_allocator(allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
    """Allocate page-locked memory by ``allocator``; without a pool if None."""
    global _allocator
    _allocator = _malloc if allocator is None else allocator


def is_memory_pinned(ptr: int) -> bool:
    """Return whether the memory at the address ``ptr`` is page-locked."""
    return cuda.pointerIsPageLocked(ptr)


__all__ = [
    "PinnedMemory",
    "PinnedMemoryPointer",
    "PinnedMemoryPool",
    "PooledPinnedMemory",
    "alloc_pinned_memory",
    "is_memory_pinned",
    "set_pinned_memory_allocator",
]
