"""The function that allocates the memory of new arrays, which a program may choose."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from tcuda._process.exit import finalizer
from tcuda._process.lazy import cuda
from tcuda.emulation.cuda import memory_hook, raw_memory
from tcuda.emulation.devices import memory
from tcuda.emulation.devices.memory import Block, MemoryPointer, allocate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Allocator = Callable[[int], MemoryPointer]


_UNIT = 512
"""The sizes of the memory that a pool hands out are multiples of this number of bytes."""


def rounded(size: int) -> int:
    """Return the size of the memory that a pool hands out for ``size`` bytes."""
    return -(-size // _UNIT) * _UNIT


class _HookedMemory(Block):
    """Memory of which the hooks are told when it is freed.

    Args:
        source: The memory.
        size: The size that the hooks are told.
    """

    __slots__ = ("_source",)

    def __init__(self, source: Block, size: int) -> None:
        self.ptr, self.device, self.size, self.requested = source.ptr, source.device, source.size, size
        self._source: Block = source

    def free(self) -> None:
        """Free the memory."""
        ptr, self.ptr, self.size = self.ptr, 0, 0
        if ptr:
            facts = {"device_id": self.device, "mem_size": self.requested, "mem_ptr": ptr, "pmem_id": id(self)}
            with memory_hook.around("free", facts, {}):
                self._source.free()

    __del__ = finalizer(free)


def acquire(size: int) -> MemoryPointer:
    """Return new memory of the caching allocator of tcuda."""
    return MemoryPointer(allocate(size), 0)


def malloc(size: int) -> MemoryPointer:
    """Return new memory of the caching allocator of tcuda, which is the default allocator, and tell the hooks."""
    if not memory_hook.get_memory_hooks() or not size:
        return acquire(size)
    facts = {"device_id": cuda.getDevice(), "size": size, "mem_size": rounded(size)}
    with memory_hook.around("malloc", facts, {"mem_ptr": 0, "pmem_id": 0}) as results:
        block = _HookedMemory(allocate(size), rounded(size))
        results.update(mem_ptr=block.ptr, pmem_id=id(block))
    return MemoryPointer(block, 0)


class _Choice(threading.local):
    """The allocator that this thread has chosen; None if the thread uses that of the process."""

    allocator: Allocator | None = None


_of_process: Allocator = malloc
_of_thread = _Choice()
_scopes = 0
"""The number of scopes of :func:`using_allocator` and of hooks that threads are in."""
_lock = threading.Lock()


def get_allocator() -> Allocator:
    """Return the allocator of this thread."""
    return _of_thread.allocator or _of_process


def set_allocator(allocator: Allocator | None = None) -> None:
    """Allocate the memory of new arrays by ``allocator``; by ``cudaMalloc``, without a pool, if None.

    Args:
        allocator: A function that takes a number of bytes and returns a pointer to new memory.

    Raises:
        ValueError: This thread is in a scope of :func:`using_allocator`.
    """
    global _of_process
    if _of_thread.allocator is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    with _lock:
        _of_process = raw_memory.malloc if allocator is None else allocator
        _follow()


@contextlib.contextmanager
def using_allocator(allocator: Allocator | None = None) -> Iterator[None]:
    """Let this thread allocate by ``allocator`` in a scope; by ``cudaMalloc``, without a pool, if None."""
    before = _of_thread.allocator
    _count_scope(1)
    _of_thread.allocator = raw_memory.malloc if allocator is None else allocator
    try:
        yield
    finally:
        _of_thread.allocator = before
        _count_scope(-1)


def alloc(size: int) -> MemoryPointer:
    """Return new memory of the allocator of this thread.

    Raises:
        TypeError: The allocator did not return a pointer.
    """
    pointer: Any = get_allocator()(size)
    if not isinstance(pointer, MemoryPointer):
        raise TypeError(f"an allocator returns a MemoryPointer; got {pointer!r}")
    return pointer


def _count_scope(change: int) -> None:
    global _scopes
    with _lock:
        _scopes += change
        _follow()


memory_hook.changed.append(_count_scope)


def _follow() -> None:
    """Let new arrays ask for the allocator only while a program has chosen one, because the question costs time."""
    chosen = _scopes or _of_process is not malloc
    memory.allocators[:] = [alloc] if chosen else []
