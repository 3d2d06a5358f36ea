"""Pools: memory kept apart from what everybody else uses."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tcuda._arguments import flag
from tcuda._copying import refusing
from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.exit import finalizer
from tcuda._process.lazy import cuda, is_initialized
from tcuda._process.ledger import ledger
from tcuda._scope import Scope
from tcuda.memory._allocators import source_of
from tcuda.memory._snapshots import memory_snapshot

if TYPE_CHECKING:
    from tcuda import _core
    from tcuda._process.devices import DeviceArgument

PoolId = tuple[int, int]


class MemPool:
    """A pool of memory of its own (``torch.cuda.MemPool``); :func:`use_mem_pool` lets allocations come from it.

    Its memory is used by nobody else, and goes back to the device when the pool and all arrays in it are gone. With an
    allocator the pool takes its segments from it, 2 MiB and more at a time, and divides them up itself. The pool keeps
    the allocator alive, and the allocator its library.

    Args:
        allocator: A :class:`CUDAPluggableAllocator`, or what its ``allocator()`` returned; None for the device's own
            memory.
        use_on_oom: Whether other allocations may use what is free in the pool before they run out of memory.
        no_split: Whether every array has a segment of its own.

    Raises:
        TypeError: ``allocator`` is no allocator, or another argument is not True or False.
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

    @property
    def id(self) -> PoolId:
        """The number of the pool, as ``segment_pool_id`` in :func:`memory_snapshot` has it."""
        return self._id

    @property
    def allocator(self) -> _core.Source | None:
        """What the pool takes its segments from; None for the device's own memory."""
        return self._source

    def use_count(self) -> int:
        """Return how many hold the pool on the current device: this object, and each block of :func:`use_mem_pool`."""
        device = cuda.getDevice()
        return self._ledger.pool_uses(device, self._id) if device in self._devices else 0

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Return the segments of the pool, as :func:`memory_snapshot` does.

        Args:
            include_traces: Taken for torch's sake; the segments have their stacks in any case.
        """
        ledger()  # which refuses a forked child
        return memory_snapshot(self._id, include_traces)

    def _open_on(self, device: int) -> None:
        if device not in self._devices:
            self._ledger.create_pool(device, self._id, self._source, not self._no_split, self._use_on_oom)
            self._devices.append(device)

    def _release(self) -> None:
        for device in getattr(self, "_devices", ()):  # absent where the arguments were wrong
            self._ledger.release_pool(device, self._id)

    __del__ = finalizer(_release)


def use_mem_pool(pool: MemPool, device: DeviceArgument = None) -> Scope:
    """Return a context manager in which this thread's allocations come from ``pool`` (``torch.cuda.use_mem_pool``).

    Blocks nest; other threads are not concerned. A block that another thread leaves, as the generator does that is
    closed there, ends for the thread that entered it.

    Args:
        pool: The pool.
        device: The device on which; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        TypeError: ``pool`` is no pool.
        ValueError: ``device`` is not a CUDA device.
    """
    return _PoolScope(pool, device)


class _PoolScope(Scope):
    """The block of :func:`use_mem_pool`, by a number that no other use of a pool has."""

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
        pool._ledger.begin_pool(index, pool._id, self._number)

    def undo(self) -> None:
        if self._index >= 0 and is_initialized():  # which a forked child is not
            self._pool._ledger.end_pool(self._index, self._pool._id, self._number)

    def again(self) -> _PoolScope:
        return _PoolScope(self._pool, self._device)


def graph_pool_handle() -> PoolId:
    """Return a number for a pool that no other has (``torch.cuda.graph_pool_handle``)."""
    return 0, ledger().next_pool()
