"""Memory pools as CuPy's objects."""

from __future__ import annotations

import gc
import os
import threading
from typing import TYPE_CHECKING, Any

from tcuda import memory
from tcuda._base.errors import OutOfMemoryError
from tcuda._base.statuses import Status
from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda.emulation.cuda import memory_hook, raw_memory
from tcuda.emulation.cuda.allocators import acquire, malloc, rounded
from tcuda.emulation.devices.device import Device
from tcuda.emulation.devices.memory import Block, MemoryPointer, note_given
from tcuda.emulation.devices.runtime_error import CUDARuntimeError

if TYPE_CHECKING:
    from collections.abc import Callable


class PooledMemory(Block):
    """Memory that goes back to its pool when the last array in it is deleted.

    Args:
        source: The memory that the pool keeps.
        give_back: The function that returns the memory to the pool.
    """

    __slots__ = ("_give_back", "_source")

    def __init__(self, source: MemoryPointer, size: int, give_back: Callable[[MemoryPointer, int], None]) -> None:
        self.ptr = source.ptr
        self.device = source.device_id
        self.size = self.requested = size
        self._source = source
        self._give_back = give_back

    def free(self) -> None:
        """Give the memory back to the pool."""
        size, ptr, self.ptr, self.size = self.size, self.ptr, 0, 0
        if size:
            facts = {"device_id": self.device, "mem_size": size, "mem_ptr": ptr, "pmem_id": id(self)}
            with memory_hook.around("free", facts, {}):
                self._give_back(self._source, size)

    __del__ = finalizer(free)


class _DevicePool:
    """The memory of a pool on one device.

    Attributes:
        spare: The free memory, by stream and size.
        used: The bytes in use.
        free: The bytes that are free.
        limit: The most bytes that the pool may acquire; 0 for no limit.
    """

    def __init__(self, limit: int) -> None:
        self.spare: dict[tuple[int, int], list[MemoryPointer]] = {}
        self.used = 0
        self.free = 0
        self.limit = limit


class MemoryPool:
    """A pool that keeps freed memory for the stream for which the memory was allocated (``cupy.cuda.MemoryPool``).

    As in CuPy, the memory comes from the driver, and no other pool counts the memory. The pool does not split its
    memory: freed memory is used again for the same size, rounded up to a multiple of 512 bytes.

    Args:
        allocator: The function that allocates for the pool; ``cudaMalloc`` if None.
    """

    __module__ = "tcuda.emulation.cuda"

    def __init__(self, allocator: Callable[[int], MemoryPointer] | None = None) -> None:
        self._allocate = allocator or raw_memory.malloc
        self._lock = threading.RLock()
        self._pools: dict[int, _DevicePool] = {}

    def malloc(self, size: int) -> MemoryPointer:
        """Return a pointer to memory of ``size`` bytes.

        Raises:
            OutOfMemoryError: The device has no room, or the limit of the pool does not allow so much memory.
        """
        if not size:
            return acquire(0)
        whole = rounded(size)
        facts = {"device_id": cuda.getDevice(), "size": size, "mem_size": whole}
        with memory_hook.around("malloc", facts, {"mem_ptr": 0, "pmem_id": 0}) as results:
            block = self._malloc(whole)
            note_given(block.ptr, size)
            results.update(mem_ptr=block.ptr, pmem_id=id(block))
        return MemoryPointer(block, 0)

    def _malloc(self, whole: int) -> PooledMemory:
        """Return memory of ``whole`` bytes."""
        stream = backend.current_stream().ptr
        with self._lock:
            pool = self._of_device()
            spare = pool.spare.get((stream, whole))
            if spare:
                source = spare.pop()
                pool.free -= whole
            else:
                source = self._acquire(pool, whole)
            pool.used += whole

        def give_back(source: MemoryPointer, size: int) -> None:
            with self._lock:
                pool.used -= size
                pool.free += size
                pool.spare.setdefault((stream, size), []).append(source)

        return PooledMemory(source, whole, give_back)

    def _acquire(self, pool: _DevicePool, size: int) -> MemoryPointer:
        if pool.limit and pool.used + pool.free + size > pool.limit:
            self.free_all_blocks()
        if pool.limit and pool.used + pool.free + size > pool.limit:
            raise _out_of_memory(pool, size)
        facts = {"device_id": cuda.getDevice(), "mem_size": size}
        with memory_hook.around("alloc", facts, {"mem_ptr": 0}) as results:
            source = self._try(size)
            if source is None:
                self.free_all_blocks()
                gc.collect()  # an array in a circle of garbage may hold memory of this pool
                self.free_all_blocks()
                source = self._try(size)
            if source is None:
                raise _out_of_memory(pool, size)
            results.update(mem_ptr=source.ptr)
        return source

    def _try(self, size: int) -> MemoryPointer | None:
        """Return new memory of the allocator; None if there is no room."""
        try:
            return self._allocate(size)
        except OutOfMemoryError:  # of the caching allocator of tcuda, from which the program lets the pool allocate
            return None
        except CUDARuntimeError as error:
            if error.status != Status.MEMORY_ALLOCATION:
                raise
            return None

    def free_all_blocks(self, stream: Any = None) -> None:
        """Free the memory of the current device that is not in use; only that of ``stream`` if given."""
        with self._lock:
            pool = self._of_device()
            for key in [key for key in pool.spare if stream is None or key[0] == stream.ptr]:
                spare = pool.spare.pop(key)
                pool.free -= key[1] * len(spare)

    free_all_free = free_all_blocks

    def n_free_blocks(self) -> int:
        """Return the number of blocks of the current device that are not in use."""
        return sum(map(len, self._of_device().spare.values()))

    def used_bytes(self) -> int:
        """Return the bytes of the current device that are in use."""
        return self._of_device().used

    def free_bytes(self) -> int:
        """Return the bytes of the current device that the pool keeps and that are not in use."""
        return self._of_device().free

    def total_bytes(self) -> int:
        """Return the bytes of the current device that the pool has acquired."""
        pool = self._of_device()
        return pool.used + pool.free

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Set the most memory of the current device that the pool may acquire.

        Args:
            size: The number of bytes; 0 for no limit.
            fraction: The part of the memory of the device, in place of ``size``.

        Raises:
            ValueError: Both arguments are given, or one is out of range.
        """
        self._of_device().limit = _limit(size, fraction)

    def get_limit(self) -> int:
        """Return the most bytes of the current device that the pool may acquire; 0 if there is no limit."""
        return self._of_device().limit

    def _of_device(self) -> _DevicePool:
        device = cuda.getDevice()
        return self._pools.get(device) or self._pools.setdefault(device, _DevicePool(_limit_of_environment()))


def _out_of_memory(pool: _DevicePool, size: int) -> OutOfMemoryError:
    limit = f", limit set to: {pool.limit:,} bytes" if pool.limit else ""
    return OutOfMemoryError(
        f"Out of memory allocating {size:,} bytes (allocated so far: {pool.used + pool.free:,} bytes{limit})."
    )


def _limit(size: int | None, fraction: float | None) -> int:
    if size is None:
        if fraction is None:
            return 0
        if not 0 <= fraction <= 1:
            raise ValueError(f"memory limit fraction out of range: {fraction}")
        return int(fraction * Device().mem_info[1])
    if fraction is not None:
        raise ValueError("size and fraction cannot be specified at one time")
    if size < 0:
        raise ValueError(f"memory limit size out of range: {size}")
    return size


def _limit_of_environment() -> int:
    """Return the limit in ``CUPY_GPU_MEMORY_LIMIT``: bytes, or a part of the memory such as ``50%``; 0 without it."""
    text = os.environ.get("CUPY_GPU_MEMORY_LIMIT")
    if text is None:
        return 0
    return _limit(None, float(text[:-1]) / 100) if text.endswith("%") else _limit(int(text), None)


class DefaultPool(MemoryPool):
    """The caching allocator of tcuda, from which arrays get their memory, as CuPy's default pool."""

    def malloc(self, size: int) -> MemoryPointer:
        """Return a pointer to memory of ``size`` bytes."""
        return malloc(size)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Free the cached memory of all devices and streams."""
        memory.empty_cache()

    free_all_free = free_all_blocks

    def n_free_blocks(self) -> int:
        """Return the number of cached pieces of memory of the current device."""
        device = cuda.getDevice()
        segments = [segment for segment in memory.memory_snapshot() if segment["device"] == device]
        return sum(block["state"] == "inactive" for segment in segments for block in segment["blocks"])

    def used_bytes(self) -> int:
        """Return the bytes of the current device that are in use."""
        return memory.memory_allocated()

    def free_bytes(self) -> int:
        """Return the bytes of the current device that are cached and not in use."""
        return self.total_bytes() - self.used_bytes()

    def total_bytes(self) -> int:
        """Return the bytes of the current device that the allocator has acquired."""
        return memory.memory_reserved()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Set the most memory of the current device that the allocator may acquire, as :meth:`MemoryPool.set_limit`."""
        total = Device().mem_info[1]
        limit = _limit(size, fraction)
        memory.set_per_process_memory_fraction(min(1.0, limit / total) if limit else 1.0)

    def get_limit(self) -> int:
        """Return the most bytes of the current device that the allocator may acquire; 0 if there is no limit."""
        fraction = memory.get_per_process_memory_fraction()
        return 0 if fraction == 1.0 else int(fraction * Device().mem_info[1])


default_pool = DefaultPool()


def get_default_memory_pool() -> MemoryPool:
    """Return the pool from which arrays get their memory if the program chooses no allocator."""
    return default_pool
