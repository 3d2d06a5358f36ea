"""The function that allocates the memory of new arrays, which a program may choose."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from tcuda.emulation import memory
from tcuda.emulation.memory import MemoryPointer, allocate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Allocator = Callable[[int], MemoryPointer]


def malloc(size: int) -> MemoryPointer:
    """Return new memory of the caching allocator of tcuda, which is the default allocator."""
    return MemoryPointer(allocate(size), 0)


class _Choice(threading.local):
    """The allocator that this thread has chosen; None if the thread uses that of the process."""

    allocator: Allocator | None = None


_of_process: Allocator = malloc
_of_thread = _Choice()
_scopes = 0
"""The number of scopes of :func:`using_allocator` that threads are in."""
_lock = threading.Lock()


def get_allocator() -> Allocator:
    """Return the allocator of this thread."""
    return _of_thread.allocator or _of_process


def set_allocator(allocator: Allocator | None = None) -> None:
    """Allocate the memory of new arrays by ``allocator``; by the allocator of tcuda if None.

    Args:
        allocator: A function that takes a number of bytes and returns a pointer to new memory.

    Raises:
        ValueError: This thread is in a scope of :func:`using_allocator`.
    """
    global _of_process
    if _of_thread.allocator is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    with _lock:
        _of_process = malloc if allocator is None else allocator
        _follow()


@contextlib.contextmanager
def using_allocator(allocator: Allocator | None = None) -> Iterator[None]:
    """Let this thread allocate by ``allocator`` in a scope; by the allocator of tcuda if None."""
    global _scopes
    before = _of_thread.allocator
    with _lock:
        _scopes += 1
        _follow()
    _of_thread.allocator = malloc if allocator is None else allocator
    try:
        yield
    finally:
        _of_thread.allocator = before
        with _lock:
            _scopes -= 1
            _follow()


def alloc(size: int) -> MemoryPointer:
    """Return new memory of the allocator of this thread.

    Raises:
        TypeError: The allocator did not return a pointer.
    """
    pointer: Any = get_allocator()(size)
    if not isinstance(pointer, MemoryPointer):
        raise TypeError(f"an allocator returns a MemoryPointer; got {pointer!r}")
    return pointer


def _follow() -> None:
    """Let new arrays ask for the allocator only while a program has chosen one, because the question costs time."""
    chosen = _scopes or _of_process is not malloc
    memory.allocators[:] = [alloc] if chosen else []
