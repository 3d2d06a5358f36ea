"""The allocators of the replays.

Each allocator must be made in a fresh process, because caches, settings and budgets persist. The variables of
``environment`` must be set before any import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Allocator(NamedTuple):
    """An allocator, with its cheapest calls.

    Attributes:
        allocate: Takes a size in bytes, and returns the argument of ``free``.
        free: Frees an allocation.
        array: Takes a size in bytes, and returns an array, whose memory is freed when the array is deleted.
        clear: Gives all free memory back to the driver.
        synchronize: Waits for the device.
        reserved: Returns the bytes that the allocator holds.
        peak_reserved: Returns the peak of the bytes that the allocator held; None if the allocator does not count them.
        driver_allocations: Returns the number of allocations from the driver; None if the allocator does not count
            them.
        driver_calls: Returns the number of calls that took memory from the driver or gave memory back; None as before.
        spin: Gives the stream work for about 2 ms.
        set_limit: Sets the most bytes that the allocator may hold; None if the allocator has no limit.
    """

    allocate: Callable[[int], Any]
    free: Callable[[Any], object]
    array: Callable[[int], Any]
    clear: Callable[[], None]
    synchronize: Callable[[], None]
    reserved: Callable[[], int]
    peak_reserved: Callable[[], int] | None = None
    driver_allocations: Callable[[], int] | None = None
    driver_calls: Callable[[], int] | None = None
    spin: Callable[[], object] = lambda: None
    set_limit: Callable[[int], object] | None = None


_SPIN = 4_000_000  # cycles, about 2 ms
_SPIN_KERNEL = 'extern "C" __global__ void spin(long long n) { for (long long s = clock64(); clock64() - s < n;); }'


def _fraction(limit: int, total: int) -> float:
    """Return the share of ``total`` that is ``limit``, and not a byte less after the product is rounded down."""
    return (limit + 1024) / total


def _calls(stats: dict[str, int]) -> int:
    return stats["num_device_alloc"] + stats["num_device_free"]


class Source(NamedTuple):
    """The way to make an allocator.

    Attributes:
        make: Makes the allocator, and imports the modules that it needs. No earlier code may use the device.
        imports: The modules that take long to import; their import does not use the device.
        environment: The environment variables that must be set.
    """

    make: Callable[[], Allocator]
    imports: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


SETTINGS = ("TCUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""The environment variables of the caller that must not reach an allocator."""


def _tcuda() -> Allocator:
    import tcuda
    from tcuda._process.ledger import ledger

    tcuda.init()
    in_use, empty, uint8 = ledger(), tcuda.xp.empty, tcuda.xp.uint8
    return Allocator(
        allocate=lambda size: in_use.allocate(0, size, 0),
        free=in_use.free,
        array=lambda size: empty(size, dtype=uint8),
        clear=tcuda.empty_cache,
        synchronize=tcuda.synchronize,
        reserved=tcuda.memory_reserved,
        peak_reserved=tcuda.max_memory_reserved,
        driver_allocations=lambda: tcuda.memory_stats()["num_device_alloc"],
        driver_calls=lambda: _calls(tcuda.memory_stats()),
        spin=lambda: tcuda._sleep(_SPIN),
        set_limit=lambda limit: tcuda.set_per_process_memory_fraction(_fraction(limit, tcuda.mem_get_info()[1])),
    )


def _torch() -> Allocator:
    import torch

    torch.cuda.init()
    stream = torch.cuda.current_stream().cuda_stream
    allocate, empty, uint8 = torch._C._cuda_cudaCachingAllocator_raw_alloc, torch.empty, torch.uint8
    return Allocator(
        allocate=lambda size: allocate(size, stream),
        free=torch._C._cuda_cudaCachingAllocator_raw_delete,
        array=lambda size: empty(size, dtype=uint8, device="cuda"),
        clear=torch.cuda.empty_cache,
        synchronize=torch.cuda.synchronize,
        reserved=torch.cuda.memory_reserved,
        peak_reserved=torch.cuda.max_memory_reserved,
        driver_allocations=lambda: torch.cuda.memory_stats()["num_device_alloc"],
        driver_calls=lambda: _calls(torch.cuda.memory_stats()),
        spin=lambda: torch.cuda._sleep(_SPIN),
        set_limit=lambda limit: torch.cuda.set_per_process_memory_fraction(
            _fraction(limit, torch.cuda.mem_get_info()[1])
        ),
    )


def _cupy() -> Allocator:
    from cupy.cuda import Memory, MemoryPointer, MemoryPool

    taken = 0

    def take(size: int) -> Any:
        nonlocal taken
        taken += 1
        return MemoryPointer(Memory(size), 0)

    pool = MemoryPool(take)
    return _of_pool(pool, lambda: taken)._replace(set_limit=lambda limit: pool.set_limit(size=limit))


def _cupy_async() -> Allocator:
    from cupy.cuda import MemoryAsyncPool

    return _of_pool(MemoryAsyncPool(), None)


def _of_pool(pool: Any, driver_allocations: Callable[[], int] | None) -> Allocator:
    import cupy

    cupy.cuda.set_allocator(pool.malloc)
    empty, uint8 = cupy.empty, cupy.uint8
    kernel = cupy.RawKernel(_SPIN_KERNEL, "spin")
    return Allocator(
        allocate=pool.malloc,
        free=lambda pointer: None,  # The deletion of the pointer frees the memory.
        array=lambda size: empty(size, dtype=uint8),
        clear=pool.free_all_blocks,
        synchronize=cupy.cuda.runtime.deviceSynchronize,
        reserved=pool.total_bytes,
        driver_allocations=driver_allocations,
        driver_calls=driver_allocations,
        spin=lambda: kernel((1,), (1,), (_SPIN,)),
    )


SOURCES = {
    "tcuda": Source(_tcuda),
    "tcuda_trimmed": Source(_tcuda, environment={"TCUDA_ALLOC_CONF": "trim:always"}),
    "tcuda_segments": Source(_tcuda, environment={"TCUDA_ALLOC_CONF": "expandable_segments:False"}),
    "torch": Source(_torch, imports=("torch",)),
    "torch_expandable": Source(
        _torch, imports=("torch",), environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    ),
    "cupy": Source(_cupy),
    "cupy_async": Source(_cupy_async),
}
"""The allocators, by name; ``tcuda_trimmed`` is tcuda's allocator with ``trim:always``, and ``tcuda_segments`` is
tcuda's allocator with torch's default, segments of fixed size."""
