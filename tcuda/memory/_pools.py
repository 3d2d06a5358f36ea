"""Pools of memory, each separate from all other memory."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import flag
from tcuda._base.copying import refusing
from tcuda._base.scope import Scope
from tcuda._process.captures import captures
from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.exit import finalizer
from tcuda._process.lazy import cuda, is_initialized
from tcuda._process.ledger import ledger
from tcuda.memory._allocators import source_of
from tcuda.memory._sleep import checked_keep, put_to_sleep, wake_up
from tcuda.memory._snapshots import memory_snapshot

if TYPE_CHECKING:
    from tcuda import _core
    from tcuda._process.devices import DeviceArgument

PoolId = tuple[int, int]


class MemPool:
    """A pool of memory that is separate from all other memory (``torch.cuda.MemPool``).

    In a block of :func:`use_mem_pool`, allocations come from the pool. No other allocation uses the memory of the pool.
    The memory goes back to the device when the pool and all arrays in the pool are gone.

    A pool with an allocator takes segments of 2 MiB and more from the allocator, and divides the segments itself. The
    pool keeps the allocator alive, and the allocator keeps its library loaded.

    Args:
        allocator: A :class:`CUDAPluggableAllocator`, or the result of its ``allocator()``; None for memory of the
            driver.
        use_on_oom: Whether other allocations may use free memory of the pool before they run out of memory.
        no_split: Whether every array has a segment of its own.

    Raises:
        TypeError: ``allocator`` is not an allocator, or another argument is not True or False.

    Example:
        >>> pool = tcuda.MemPool()
        >>> with tcuda.use_mem_pool(pool):
        ...     x = xp.zeros(1000, dtype="float32")
        >>> sum(segment["allocated_size"] for segment in pool.snapshot())  # bytes
        4096
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        self._source = None if allocator is None else source_of(allocator)
        self._use_on_oom = flag(use_on_oom, "use_on_oom")
        self._no_split = flag(no_split, "no_split")
        self._ledger = ledger()
        self._id = graph_pool_handle()
        self._devices: list[int] = []
        self._open_on(cuda.getDevice())

    __reduce__ = refusing(
        "copy or pickle",
        "both would own the same memory. Make another MemPool, which may have the same allocator.",
    )

    def __repr__(self) -> str:
        if not is_initialized():  # in a forked child
            return f"<tcuda.MemPool id={self._id}>"
        segments = self.snapshot()
        reserved = sum(segment["total_size"] for segment in segments if not segment.get("is_asleep"))
        allocated = sum(segment["allocated_size"] for segment in segments)
        asleep = ", asleep" if self.is_asleep else ""
        return f"<tcuda.MemPool id={self._id}: {allocated} bytes allocated, {reserved} bytes reserved{asleep}>"

    @property
    def id(self) -> PoolId:
        """The number of the pool, which is ``segment_pool_id`` in :func:`memory_snapshot`."""
        return self._id

    @property
    def allocator(self) -> _core.Source | None:
        """The allocator from which the pool takes its segments; None for memory of the driver."""
        return self._source

    def use_count(self) -> int:
        """Return the number of users of the pool on the current device.

        The users are this object and each block of :func:`use_mem_pool`.

        Example:
            >>> pool = tcuda.MemPool()
            >>> pool.use_count()
            1
        """
        device = cuda.getDevice()
        return self._ledger.pool_uses(device, self._id) if device in self._devices else 0

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Return the segments of the pool, as :func:`memory_snapshot` does.

        Args:
            include_traces: Accepted for compatibility with torch, and ignored. The segments always have their stacks.

        Example:
            >>> pool = tcuda.MemPool()
            >>> with tcuda.use_mem_pool(pool):
            ...     x = xp.zeros(1000)
            >>> [segment["allocated_size"] for segment in pool.snapshot()]  # bytes
            [8192]
        """
        ledger()  # raises in a forked child
        return memory_snapshot(self._id, include_traces)

    def sleep(self, keep: bool = True) -> None:
        """Give the memory of the pool back to its devices; the arrays keep their addresses.

        :func:`tcuda.memory.sleep` does the same for the default pool, and says what happens. The graphs that were
        captured into the pool sleep with the pool.

        Args:
            keep: Whether to keep the contents of the arrays. If False, the bytes of the arrays are undefined after
                :meth:`wake`.

        Raises:
            AcceleratorError: The driver has no page-locked memory for the contents, or refuses a call.
            RuntimeError: A graph is being captured, another process may use memory of the pool, or the memory was not
                taken as expandable segments of the native allocator, as with ``allocator`` and ``no_split``. Nothing
                has changed, unless the message says that the pool is still asleep on another device, or that
                arrays of another device have lost their contents.
            TypeError: ``keep`` is not True or False.

        Example:
            >>> pool = tcuda.MemPool()
            >>> with tcuda.use_mem_pool(pool):
            ...     x = xp.ones(1000)
            >>> pool.sleep()
            >>> pool.wake()
            >>> float(x.sum())
            1000.0
        """
        kept = checked_keep(keep)
        ledger()  # raises in a forked child
        put_to_sleep(self._devices, self._id, kept, "MemPool.sleep()")

    def wake(self) -> None:
        """Give the pool memory again, with the contents that :meth:`sleep` has kept: see :func:`tcuda.memory.wake`.

        Raises:
            AcceleratorError: The driver refuses a call. The pool is still asleep, with all contents.
            OutOfMemoryError: A device has too little memory. The pool is still asleep, with all contents, and the
                message says how much is missing.

        Example:
            >>> pool = tcuda.MemPool()
            >>> pool.sleep()
            >>> pool.wake()
            >>> pool.is_asleep
            False
        """
        ledger()  # raises in a forked child
        wake_up(self._devices, self._id, "MemPool.wake()")

    @property
    def is_asleep(self) -> bool:
        """Whether the pool is asleep on one of its devices: see :meth:`sleep`."""
        return any(ledger().is_asleep(device, self._id) for device in self._devices)

    def _open_on(self, device: int) -> None:
        if device not in self._devices:
            self._ledger.create_pool(device, self._id, self._source, not self._no_split, self._use_on_oom)
            self._devices.append(device)

    def _release(self) -> None:
        for device in getattr(self, "_devices", ()):  # absent if __init__ refused an argument
            self._ledger.release_pool(device, self._id)

    __del__ = finalizer(_release)


def use_mem_pool(pool: MemPool, device: DeviceArgument = None) -> Scope:
    """Return a context manager in which this thread's allocations come from ``pool`` (``torch.cuda.use_mem_pool``).

    Blocks may nest, and do not change other threads. During a capture, the graph keeps the pool until the graph is
    reset or deleted, as in torch. A generator that pauses inside a block may be closed in another thread. The block
    then ends for the thread that entered the block.

    Args:
        pool: The pool.
        device: The device on which allocations come from the pool; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        TypeError: ``pool`` is not a pool.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> pool = tcuda.MemPool()
        >>> with tcuda.use_mem_pool(pool):
        ...     x = xp.zeros(1000)
        >>> y = xp.zeros(1000)  # from the memory of all others
        >>> [segment["segment_pool_id"] == pool.id for segment in pool.snapshot()]
        [True]
    """
    return _PoolScope(pool, device)


class _PoolScope(Scope):
    """The block of :func:`use_mem_pool`. Each block has a number, which no other use of a pool has."""

    _numbers = itertools.count(1)

    def __init__(self, pool: MemPool, device: DeviceArgument) -> None:
        self._pool = pool
        self._device = device
        self._index = -1
        self._number = next(self._numbers)

    def begin(self) -> None:
        pool = self._pool
        if not isinstance(pool, MemPool):
            raise TypeError(f"use_mem_pool() takes a tcuda.MemPool; got {type(pool).__name__}.")
        index = resolve(self._device, OF_MEMORY)
        pool._open_on(index)
        self._index = index
        for capture in captures:  # all of them, because nobody knows yet on which stream the block allocates
            capture.events.append(pool)
        pool._ledger.begin_pool(index, pool._id, self._number)

    def undo(self) -> None:
        if self._index >= 0 and is_initialized():  # tcuda is not initialised in a forked child
            self._pool._ledger.end_pool(self._index, self._pool._id, self._number)

    def again(self) -> _PoolScope:
        return _PoolScope(self._pool, self._device)


def graph_pool_handle() -> PoolId:
    """Return a handle for a new pool of memory (``torch.cuda.graph_pool_handle``).

    No other pool has the same handle. Graphs that are captured with the same handle share the pool.

    Example:
        >>> handle = tcuda.graph_pool_handle()
        >>> x = xp.ones(3)
        >>> first, second = tcuda.CUDAGraph(), tcuda.CUDAGraph()
        >>> with tcuda.graph(first, pool=handle):
        ...     y = x * 2
        >>> with tcuda.graph(second, pool=handle):
        ...     z = y + 1
        >>> first.pool() == second.pool() == handle
        True
    """
    return 0, ledger().next_pool()
