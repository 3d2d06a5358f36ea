"""The emulated counterparts of CuPy's memory pools: the memory that the pools keep and give back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from tcuda import _core
from tcuda._process.alloc_conf import AllocConf
from tcuda.emulation.backend.backend import Backend
from tcuda.emulation.backend.memory_pools import MemoryAsyncPool, MemoryPool
from tcuda.emulation.runtime import EmulatedRuntime
from tcuda.emulation.runtime.allocation import Allocation

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated

MIB = 1 << 20
STREAM = 0x100


def refuse(*what: object, **facts: object) -> NoReturn:
    raise AssertionError((what, facts))


@pytest.fixture
def devices() -> EmulatedRuntime:
    """Two devices of 4 MiB each."""
    return EmulatedRuntime(devices=2, memory=4 * MIB)


@pytest.fixture
def ledger(devices: EmulatedRuntime) -> _core.Ledger:
    return _core.Ledger(devices.memoryDriver(), 2, AllocConf().settings(), refuse, refuse)


@pytest.fixture
def pool(ledger: _core.Ledger) -> MemoryPool:
    return MemoryPool(ledger)


@pytest.fixture
def async_pool(devices: EmulatedRuntime) -> MemoryAsyncPool:
    return MemoryAsyncPool(devices.devices, devices.races)


def used(devices: EmulatedRuntime) -> list[int]:
    return [device.memory.used for device in devices.devices]


class TestMemoryPool:
    def test_freed_memory_is_reused(self, devices: EmulatedRuntime, pool: MemoryPool) -> None:
        memory = pool.allocate(MIB, 0, STREAM)
        address = memory.ptr
        del memory
        assert used(devices) == [MIB, 0]
        assert pool.allocate(MIB, 0, STREAM).ptr == address
        assert used(devices) == [MIB, 0]

    def test_blocks_in_use_do_not_overlap(self, devices: EmulatedRuntime, pool: MemoryPool) -> None:
        pool.allocate(MIB, 0, STREAM)
        first, second = pool.allocate(MIB, 0, STREAM), pool.allocate(MIB, 0, STREAM)
        assert abs(first.ptr - second.ptr) >= MIB
        assert used(devices) == [2 * MIB, 0]

    @pytest.mark.parametrize(
        ("size", "device", "stream", "then"),
        [
            (2 * MIB, 0, STREAM, [3 * MIB, 0]),
            (MIB - 512, 0, STREAM, [2 * MIB - 512, 0]),
            (MIB, 1, STREAM, [MIB, MIB]),
            (MIB, 0, 0, [2 * MIB, 0]),
        ],
        ids=["larger", "smaller", "another device", "another stream"],
    )
    def test_memory_is_kept_for_the_same_size_device_and_stream(
        self, devices: EmulatedRuntime, pool: MemoryPool, size: int, device: int, stream: int, then: list[int]
    ) -> None:
        address = pool.allocate(MIB, 0, STREAM).ptr
        memory = pool.allocate(size, device, stream)
        assert memory.ptr != address
        assert used(devices) == then

    def test_empty_cache_gives_back_the_free_memory_of_one_device(
        self, devices: EmulatedRuntime, pool: MemoryPool
    ) -> None:
        kept = [pool.allocate(MIB, device, STREAM) for device in (0, 1)]
        for device in (0, 1):
            pool.allocate(MIB, device, STREAM)
            pool.allocate(MIB // 2, device, 0)
        assert used(devices) == [5 * MIB // 2] * 2
        pool.empty_cache(0)
        assert used(devices) == [MIB, 5 * MIB // 2]
        pool.empty_cache(1)
        assert used(devices) == [MIB, MIB]
        del kept

    def test_a_full_device_gets_its_free_memory_back(self, devices: EmulatedRuntime, pool: MemoryPool) -> None:
        for device in (0, 1):
            pool.allocate(3 * MIB, device, 0)
        memory = pool.allocate(4 * MIB, 0, STREAM)
        assert used(devices) == [4 * MIB, 3 * MIB]
        del memory

    def test_an_allocation_that_does_not_fit_beside_memory_in_use_fails(
        self, devices: EmulatedRuntime, pool: MemoryPool
    ) -> None:
        memory = pool.allocate(MIB, 0, STREAM)
        with pytest.raises(MemoryError):
            pool.allocate(3 * MIB + 512, 0, STREAM)
        assert used(devices) == [MIB, 0]
        del memory
        assert pool.allocate(4 * MIB, 0, STREAM).ptr

    def test_another_thread_may_allocate_while_memory_is_given_back(self) -> None:
        class Segments:
            """Allocates while a segment is given back, as another thread might."""

            def allocate_segment(self, device: int, size: int) -> int:
                return size

            def free_segment(self, device: int, address: int) -> None:
                given_back.append(address)
                pool.allocate(2 * address, device, STREAM)

        given_back: list[int] = []
        pool = MemoryPool(Segments())  # type: ignore[arg-type]
        pool.allocate(512, 0, STREAM)
        pool.empty_cache(0)
        assert given_back == [512]

    def test_segments_are_reserved_memory(
        self, devices: EmulatedRuntime, ledger: _core.Ledger, pool: MemoryPool
    ) -> None:
        memory = pool.allocate(MIB, 0, STREAM)
        assert (ledger.reserved(0), ledger.allocated(0), ledger.reserved(1)) == (MIB, 0, 0)
        del memory
        assert ledger.reserved(0) == MIB
        pool.empty_cache(0)
        assert ledger.reserved(0) == 0
        assert ledger.statistics(0)["num_device_free"] == 1


class TestMemoryAsyncPool:
    def test_no_memory_is_kept(self, devices: EmulatedRuntime, async_pool: MemoryAsyncPool) -> None:
        memory = async_pool.allocate(MIB, 1, STREAM)
        assert used(devices) == [0, MIB]
        async_pool.empty_cache(1)
        assert used(devices) == [0, MIB]
        del memory
        assert used(devices) == [0, 0]

    def test_an_allocation_that_does_not_fit_fails(self, devices: EmulatedRuntime, async_pool: MemoryAsyncPool) -> None:
        memory = async_pool.allocate(MIB, 0, STREAM)
        with pytest.raises(MemoryError):
            async_pool.allocate(3 * MIB + 512, 0, STREAM)
        assert used(devices) == [MIB, 0]
        del memory


def test_an_event_of_the_allocator_leaves_nothing_behind_and_may_be_destroyed_twice(devices: EmulatedRuntime) -> None:
    streams = devices._parts.driver_streams
    before = dict(vars(streams))
    first, second = streams.record(0, 0), streams.record(0, 0)
    assert first != 0  # 0 stands for no event
    assert streams.query(0, first) == streams.query(0, second) == 0
    assert streams.destroy_event(0, first) == streams.destroy_event(0, first) == 0
    assert streams.query(0, second) == 0
    assert vars(streams) == before


def test_nothing_is_released_once_the_process_is_exiting() -> None:
    released: list[int] = []
    memory = Allocation(1, released.append)
    memory.__del__(lambda: True)
    assert released == []
    del memory
    assert released == [1]


class TestAsTheSourceOfALedger:
    @pytest.mark.parametrize(
        ("backend", "while_alive", "afterwards"), [("cupy", 1536, 1536), ("cudaMallocAsync", 0, 0)]
    )
    def test_sizes_are_rounded_up_and_segments_of_cupys_pool_are_reserved(
        self, devices: EmulatedRuntime, ledger: _core.Ledger, backend: str, while_alive: int, afterwards: int
    ) -> None:
        assert ledger.change_source(Backend(devices).memory_source(backend, ledger))
        address = ledger.allocate(0, 1025, STREAM)
        assert (ledger.allocated(0), ledger.reserved(0), used(devices)) == (1536, while_alive, [1536, 0])
        assert ledger.free(address)
        assert (ledger.allocated(0), ledger.reserved(0), used(devices)) == (0, afterwards, [afterwards, 0])
        ledger.empty_cache(0)
        assert (ledger.reserved(0), used(devices)) == (0, [0, 0])

    @pytest.mark.parametrize("backend", ["cupy", "cudaMallocAsync"])
    def test_arrays_are_allocated_from_the_pool(self, output_of: OutputOf, backend: str) -> None:
        code = (
            "import tcuda\n"
            "array = tcuda.xp.ones(1000)\n"
            "print(tcuda.get_allocator_backend(), tcuda.memory_allocated(), float(array.sum()))\n"
            "try: tcuda.xp.empty(5 << 20, 'B')\n"
            "except tcuda.OutOfMemoryError as error: print(error)\n"
            "tcuda.xp.ones(1000)\n"
            "tcuda.empty_cache()\n"
            "print(tcuda.memory_allocated(), tcuda.mem_get_info()[1] - tcuda.mem_get_info()[0])\n"
        )
        lines = output_of(
            code, TCUDA_RUNTIME="emulated", TCUDA_EMULATED_MEMORY="4MiB", TCUDA_ALLOC_CONF=f"backend:{backend}"
        ).splitlines()
        assert lines[0] == f"{backend} 8192 1000.0"
        assert lines[1].startswith(
            "CUDA out of memory. Tried to allocate 5.00 MiB. GPU 0 has a total capacity of 4.00 MiB"
        )
        assert lines[2] == "8192 8192"
