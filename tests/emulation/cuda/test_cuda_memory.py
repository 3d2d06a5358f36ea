"""``xp.cuda``: device memory, its allocators and pools, and page-locked memory."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda
from support.busy_streams import keep_busy
from tcuda._cupy import takeover


@pytest.fixture
def cuda(xp):
    """Return ``xp.cuda``, and choose the default allocators again afterwards."""
    allocator = xp.cuda.get_allocator()
    yield xp.cuda
    xp.cuda.set_allocator(allocator)
    xp.cuda.set_pinned_memory_allocator(_tcudas_allocator_of_page_locked_memory(xp))


def _tcudas_allocator_of_page_locked_memory(xp):
    """Return the allocator that was chosen before; ``xp.cuda`` has no function that returns this allocator."""
    if xp.__name__ == "cupy":
        return takeover._first_use.allocate_on_host
    return xp.cuda.pinned_memory._from_tcuda


def test_an_allocator_of_the_program_gets_all_requests(xp, cuda):
    sizes = []

    def allocate(size):
        sizes.append(size)
        return cuda.MemoryPointer(cuda.Memory(size), 0)

    default = cuda.get_allocator()
    cuda.set_allocator(allocate)
    assert cuda.get_allocator() is allocate
    x = xp.ones(10)
    assert (x + 1).sum().item() == 20
    assert sizes[:2] == [80, 80]
    cuda.set_allocator(default)
    count = len(sizes)
    xp.ones(10)
    assert len(sizes) == count


@pytest.mark.alone
def test_without_an_allocator_memory_comes_from_the_driver_and_goes_back_at_once(xp, cuda):
    default = cuda.get_allocator()
    tcuda.empty_cache()
    allocated, reserved = tcuda.memory_allocated(), tcuda.memory_reserved()
    free = tcuda.mem_get_info()[0]
    cuda.set_allocator(None)
    try:
        x = xp.ones(1 << 20)
        assert (tcuda.memory_allocated(), tcuda.memory_reserved()) == (allocated, reserved)
        assert type(x.data.mem) is cuda.Memory
        assert tcuda.mem_get_info()[0] <= free - x.nbytes
        side = tcuda.Stream()
        keep_busy(side)
        del x
        assert side.query()  # the free has waited for the device
        assert tcuda.mem_get_info()[0] == free
        assert tcuda.memory_reserved() == reserved
    finally:
        cuda.set_allocator(default)
    with cuda.using_allocator(None):
        assert type(xp.ones(10).data.mem) is cuda.Memory
    assert type(xp.ones(10).data.mem) is not cuda.Memory


def test_an_allocator_is_chosen_for_a_scope(xp, cuda):
    pool = cuda.MemoryPool()
    before = tcuda.memory_allocated()
    with cuda.using_allocator(pool.malloc):
        x = xp.ones(100)
        with pytest.raises(ValueError, match="inside `using_allocator`"):
            cuda.set_allocator()
    assert pool.used_bytes() == 1024
    assert xp.ones(100).sum() == x.sum() == 100
    assert pool.used_bytes() == 1024
    del x
    assert tcuda.memory_allocated() >= before


def test_a_pool_uses_its_memory_again(xp, cuda):
    pool = cuda.MemoryPool()
    first = pool.malloc(1000)
    address = first.ptr
    assert (pool.used_bytes(), pool.free_bytes(), pool.n_free_blocks()) == (1024, 0, 0)
    del first
    assert (pool.used_bytes(), pool.free_bytes(), pool.n_free_blocks()) == (0, 1024, 1)
    again = pool.malloc(1024)
    assert again.ptr == address
    del again
    pool.free_all_blocks()
    assert (pool.total_bytes(), pool.n_free_blocks()) == (0, 0)


def test_a_pool_has_a_limit(xp, cuda):
    pool = cuda.MemoryPool()
    pool.set_limit(size=1024)
    assert pool.get_limit() == 1024
    held = pool.malloc(1024)
    with pytest.raises(MemoryError):
        pool.malloc(512)
    del held
    pool.malloc(512)
    pool.set_limit(fraction=0.5)
    assert pool.get_limit() == cuda.Device().mem_info[1] // 2
    pool.set_limit()
    assert pool.get_limit() == 0
    for wrong in ({"size": 1, "fraction": 0.5}, {"size": -1}, {"fraction": 1.5}):
        with pytest.raises((ValueError, OverflowError)):
            pool.set_limit(**wrong)


@pytest.mark.emulated
def test_the_default_pool_is_the_allocator_of_tcuda(xp):
    pool = xp.get_default_memory_pool()
    x = xp.ones(1000)
    assert pool.used_bytes() == tcuda.memory_allocated() > 0
    assert pool.total_bytes() == tcuda.memory_reserved()
    assert pool.free_bytes() == pool.total_bytes() - pool.used_bytes()
    del x
    pool.free_all_blocks()
    assert pool.total_bytes() == tcuda.memory_reserved()
    total = xp.cuda.Device().mem_info[1]
    pool.set_limit(size=total // 4)
    try:
        assert pool.get_limit() == total // 4
        with pytest.raises(xp.cuda.memory.OutOfMemoryError):
            xp.empty(total // 2, "u1")
    finally:
        pool.set_limit()
    assert pool.get_limit() == 0


def counts_of(pool):
    return pool.used_bytes(), pool.free_bytes(), pool.total_bytes(), pool.n_free_blocks(), pool.get_limit()


@pytest.mark.parametrize("way", ["a scope", "of the process", "by hand"])
def test_each_pool_counts_its_own_memory_only(xp, cuda, way):
    default, others = xp.get_default_memory_pool(), [cuda.MemoryPool(), cuda.MemoryPool()]
    found = counts_of(default)
    size = 8 << 20
    if way == "a scope":
        with cuda.using_allocator(others[0].malloc):
            x = xp.empty(size, "u1")
    elif way == "of the process":
        before = cuda.get_allocator()
        cuda.set_allocator(others[0].malloc)
        x = xp.empty(size, "u1")
        cuda.set_allocator(before)
    else:
        x = xp.ndarray(size, "u1", others[0].malloc(size))
    x.fill(1)
    assert [counts_of(pool) for pool in (default, *others)] == [found, (size, 0, size, 0, 0), (0, 0, 0, 0, 0)]
    default.free_all_blocks()
    others[1].free_all_blocks()
    others[1].set_limit(1 << 20)
    assert counts_of(others[0]) == (size, 0, size, 0, 0)
    del x
    assert counts_of(others[0]) == (0, size, size, 1, 0)
    assert default.used_bytes() == found[0]
    others[0].free_all_blocks()
    assert counts_of(others[0]) == (0, 0, 0, 0, 0)


@pytest.mark.emulated
def test_the_limit_of_the_default_pool_is_not_for_other_pools(xp, cuda):
    default, pool = xp.get_default_memory_pool(), cuda.MemoryPool()
    default.free_all_blocks()
    default.set_limit(size=default.total_bytes() + (24 << 20))
    try:
        held = pool.malloc(64 << 20)
        assert xp.ones(16 << 20, "u1").sum() == 16 << 20
        with pytest.raises(cuda.memory.OutOfMemoryError):
            xp.ones(64 << 20, "u1")
        pool.set_limit(size=80 << 20)
        with pytest.raises(cuda.memory.OutOfMemoryError, match="limit set to: 83,886,080 bytes"):
            pool.malloc(32 << 20)
        assert held.mem.size == 64 << 20
    finally:
        default.set_limit()


def test_a_pool_says_that_the_device_has_no_room(xp, cuda):
    pool = cuda.MemoryPool()
    held = [pool.malloc(1 << 20)]
    held.append(held)  # garbage, which the pool collects before it gives up
    del held
    with pytest.raises(cuda.memory.OutOfMemoryError, match="Out of memory allocating 1,125,899,906,842,624 bytes"):
        pool.malloc(1 << 50)
    assert pool.total_bytes() == 0


@pytest.mark.emulated
def test_the_default_pool_counts_all_its_free_pieces(xp):
    pool = xp.get_default_memory_pool()
    pool.free_all_blocks()
    first = pool.n_free_blocks()
    x, y = (xp.empty(64 << 20, "u1") for _ in range(2))
    free = pool.n_free_blocks()
    del x  # between live memory and y
    assert pool.n_free_blocks() == free + 1
    del y
    pool.free_all_blocks()
    assert pool.n_free_blocks() == first


def test_memory_of_an_owner_is_neither_copied_nor_freed(xp, cuda):
    x = xp.arange(4.0)
    memory = cuda.UnownedMemory(x.data.ptr, x.nbytes, x)
    view = xp.ndarray((2,), x.dtype, cuda.MemoryPointer(memory, 16))
    view += 10
    assert (memory.ptr, memory.size, memory.device_id) == (x.data.ptr, 32, 0)
    del view, memory
    assert x.tolist() == [0, 1, 12, 13]


@pytest.mark.alone
@pytest.mark.parametrize("name", ["Memory", "MemoryAsync"])
def test_memory_outside_of_pools_comes_from_the_runtime(name, xp, cuda):
    assert xp.ones(4).sum() == 4  # the allocator keeps the memory of small arrays
    free = cuda.Device().mem_info[0]
    arguments = (1 << 22,) if name == "Memory" else (1 << 22, cuda.Stream.null)
    memory = getattr(cuda, name)(*arguments)
    x = xp.ndarray((4,), "f4", cuda.MemoryPointer(memory, 0))
    x[...] = 3
    assert x.sum() == 12
    assert (memory.size, int(memory)) == (1 << 22, x.data.ptr)
    if name == "Memory":
        assert cuda.Device().mem_info[0] < free
    del x, memory
    cuda.Stream.null.synchronize()
    if name == "Memory":
        assert cuda.Device().mem_info[0] == free


def test_page_locked_memory_is_a_buffer(xp, cuda):
    memory = cuda.alloc_pinned_memory(80)
    host = np.frombuffer(memory, np.float64, 10)
    host[...] = np.arange(10)
    assert memory.ptr == host.ctypes.data == int(memory)
    assert memory.size() >= 80
    assert (memory + 8).ptr == memory.ptr + 8
    assert isinstance(memory, cuda.PinnedMemoryPointer)
    del memory  # NumPy's array keeps the memory
    stream = cuda.Stream(non_blocking=True)
    with stream:
        x = xp.empty(10)
        x.set(host, stream)
    stream.synchronize()
    assert x.tolist() == list(range(10))


def test_a_pool_of_page_locked_memory_uses_its_memory_again(cuda):
    pool = cuda.PinnedMemoryPool()
    cuda.set_pinned_memory_allocator(pool.malloc)
    memory = cuda.alloc_pinned_memory(1000)
    address = memory.ptr
    assert (memory.size(), pool.n_free_blocks()) == (1024, 0)
    del memory
    assert pool.n_free_blocks() == 1
    assert cuda.alloc_pinned_memory(513).ptr == address
    pool.free_all_blocks()
    assert pool.n_free_blocks() == 0


@pytest.mark.emulated
def test_page_locked_memory_is_known_to_the_runtime(cuda):
    memory = cuda.PinnedMemory(100)
    assert cuda.pinned_memory.is_memory_pinned(memory.ptr)
    assert cuda.runtime.pointerGetMemoryType(memory.ptr) == cuda.runtime.memoryTypeHost
    ptr = memory.ptr
    del memory
    assert not cuda.pinned_memory.is_memory_pinned(ptr)
    with pytest.raises(cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        cuda.runtime.freeHost(ptr)


def test_managed_memory_is_memory_of_the_host_too(xp, cuda):
    cuda.set_allocator(cuda.MemoryPool(cuda.malloc_managed).malloc)
    x = xp.arange(4.0)
    attributes = cuda.runtime.pointerGetAttributes(x.data.ptr)
    assert (attributes.type, attributes.hostPointer) == (cuda.runtime.memoryTypeManaged, x.data.ptr)
    assert x.__dlpack_device__() == (13, x.device.id)
    shared, copied = (np.from_dlpack(_OnHost(x, copy)) for copy in (None, True))
    x += 1
    cuda.Device().synchronize()
    assert shared.tolist() == [1, 2, 3, 4]
    assert copied.tolist() == [0, 1, 2, 3]
    assert xp.from_dlpack(x).data.ptr == x.data.ptr
    assert (xp.from_dlpack(x) * 2).tolist() == [2, 4, 6, 8]


def test_other_memory_is_not_managed(xp, cuda):
    freed = cuda.malloc_managed(512)
    address = freed.ptr
    del freed
    cuda.set_allocator(None)
    for x in (xp.zeros(64), xp.zeros(64)):
        assert x.__dlpack_device__() == (2, x.device.id)
    with pytest.raises(ValueError, match="without copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    assert cuda.runtime.pointerGetAttributes(address).type != cuda.runtime.memoryTypeManaged


def test_advice_for_managed_memory_is_taken(xp, cuda):
    memory = cuda.ManagedMemory(64)
    for advice in ("SetReadMostly", "UnsetReadMostly"):
        memory.advise(getattr(cuda.runtime, f"cudaMemAdvise{advice}"), cuda.Device(0))
    memory.prefetch(cuda.Stream(), device_id=0)
    assert memory.size == 64
    with pytest.raises(cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        memory.advise(99, cuda.Device(0))


class _OnHost:
    """An array of managed memory for a library that works on the host.

    Args:
        array: The array.
        copy: Whether the library gets a copy.
    """

    def __init__(self, array, copy):
        self._array, self._copy = array, copy

    def __dlpack__(self, **options):
        return self._array.__dlpack__(dl_device=(1, 0), copy=self._copy)

    def __dlpack_device__(self):
        return (1, 0)


def test_a_pool_of_pinned_memory_frees_its_unused_memory_if_the_runtime_has_none(cuda):
    refusals = [2, 1]

    def allocate(size):
        if size == 4096 and refusals:
            raise cuda.runtime.CUDARuntimeError(refusals.pop(0))
        return cuda.PinnedMemoryPointer(cuda.PinnedMemory(size, 1), 0)

    pool = cuda.PinnedMemoryPool(allocate)
    pool.malloc(512)
    with pytest.raises(cuda.runtime.CUDARuntimeError):  # the second refusal has another reason
        pool.malloc(4096)
    assert pool.n_free_blocks() == 0
    pool.malloc(512)
    refusals += [2]
    pool.malloc(4096)
    assert pool.n_free_blocks() == 1
    pool.malloc(512)
    refusals += [1]
    held = pool.malloc(4096)
    assert refusals == [1]
    with pytest.raises(cuda.runtime.CUDARuntimeError):
        pool.malloc(4096)
    assert pool.n_free_blocks() == 1
    del held
