"""The block of an array: its size, which may exceed the request, and its contents."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.blocks import block_of
from support.garbage import collect_until
from support.sizes import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from support.fixture_types import Changes, OutputOf

pytestmark = pytest.mark.usefixtures("allocator_as_found")


def whole(xp: Any, array: Any) -> Any:
    """Return an array of bytes over the whole block of ``array``."""
    return xp.ndarray((array.data.mem.size,), "B", memptr=array.data)


class TestSizes:
    @pytest.mark.parametrize("size", [1, 511, 512, 513, 1000, 1024, 100_001, MIB, MIB + 1, 3 * MIB + 5, 30 * MIB + 1])
    def test_the_memory_has_the_size_of_its_block_and_requested_bytes_are_not_rounded(
        self, xp: Any, changes: Changes, size: int
    ) -> None:
        with changes() as changed:
            array = xp.empty(size, "B")
        memory = array.data.mem
        assert memory.size == block_of(array)["size"] == changed["allocated_bytes.all.current"]
        assert memory.size >= size
        assert memory.size % 512 == 0
        assert changed["requested_bytes.all.current"] == size
        assert array.nbytes == size

    def test_an_empty_array_has_memory_of_size_0(self, xp: Any) -> None:
        assert xp.empty(0).data.mem.size == 0

    def test_views_have_the_memory_of_their_array(self, xp: Any) -> None:
        array = xp.arange(300, dtype="f4")
        view = array[100:200:3]
        assert view.data.mem is array.data.mem
        assert view.data.mem.size == 1536

    def test_settings_that_round_sizes_change_the_size_of_the_memory(
        self, xp: Any, alloc_settings: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        with alloc_settings("roundup_power2_divisions:4"):
            assert xp.empty(1200 * KIB, "B").data.mem.size == 1280 * KIB

    def test_a_block_that_is_not_split_is_larger_than_the_rounded_request(
        self, xp: Any, alloc_settings: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        with alloc_settings("expandable_segments:False"), tcuda.use_mem_pool(tcuda.MemPool()):
            assert xp.empty(29 * MIB + 1, "B").data.mem.size == 30 * MIB

    def test_without_a_cache_sizes_are_rounded_too(self, xp: Any) -> None:
        with tcuda.memory.caching_allocator_disabled():
            array = xp.empty(1000, "B")
        assert array.data.mem.size == 1024
        whole(xp, array).fill(7)

    def test_an_allocation_within_an_allocation_leaves_both_sizes_right(self, xp: Any) -> None:
        sizes: list[int] = []

        class Finalized:
            """An object whose finalizer allocates; the garbage collector may run the finalizer during an allocation."""

            def __init__(self) -> None:
                self.itself = self

            def __del__(self) -> None:
                sizes.append(xp.empty(70_000, "B").data.mem.size)

        threshold = gc.get_threshold()
        gc.set_threshold(1)
        try:
            outer = set()
            for _ in range(200):
                Finalized()
                outer.add(xp.empty(1000, "B").data.mem.size)
        finally:
            gc.set_threshold(*threshold)
        collect_until(lambda: len(sizes) == 200)
        assert len(sizes) == 200
        assert (outer, set(sizes)) == ({1024}, {70_144})


class TestContents:
    def test_the_whole_block_can_be_written_without_harm_to_other_arrays(self, xp: Any) -> None:
        with tcuda.use_mem_pool(tcuda.MemPool()):
            before, array, after = (xp.zeros(1000, "B") for _ in range(3))
        assert (
            sorted([before.data.ptr, array.data.ptr, after.data.ptr])[2] - min(before.data.ptr, after.data.ptr) == 2048
        )
        everything = whole(xp, array)
        everything.fill(255)
        assert everything.get().tolist() == [255] * 1024
        assert array.get().tolist() == [255] * 1000
        assert not before.get().any()
        assert not after.get().any()
        del before, after

    def test_the_whole_block_can_be_filled_with_nan_to_find_reads_beyond_the_end(self, xp: Any) -> None:
        """A test of CuPy looks in this way for percentiles that read beyond their input."""
        array = xp.empty(10, "f8")
        pointer = array.data
        size = pointer.mem.size
        assert size % 512 == 0
        xp.ndarray((size // 8,), "f8", memptr=pointer).fill(float("nan"))
        array[...] = xp.arange(10, dtype="f8")
        rest = xp.ndarray((size // 8 - 10,), "f8", memptr=xp.ndarray((size // 8,), "f8", memptr=pointer)[10:].data)
        assert array.get().tolist() == list(range(10))
        assert xp.isnan(rest).all()


class TestLibraries:
    def test_memory_of_a_library_has_the_requested_size(self, output_of: OutputOf, plugged_path: str) -> None:
        program = f"""
import tcuda
from tcuda.memory import CUDAPluggableAllocator, change_current_allocator
change_current_allocator(CUDAPluggableAllocator({plugged_path!r}, "logged_alloc", "logged_free"))
print(*[tcuda.xp.empty(size, "B").data.mem.size for size in (1, 513, 1000, 5000)])
"""
        assert output_of(program) == "1 513 1000 5000"

    def test_a_pool_splits_the_segments_of_its_library(self, xp: Any, plugged: Any, plugged_path: str) -> None:
        library = plugged.Plugged(plugged_path)
        pool = tcuda.MemPool(library.allocator.allocator())
        with tcuda.use_mem_pool(pool):
            array = xp.empty(1000, "B")
        assert array.data.mem.size == 1024
        del array


@pytest.mark.gpu
class TestCupy:
    """The allocator behind CuPy's own functions."""

    def test_get_allocator_returns_a_function_that_allocates(self, xp: Any) -> None:
        allocate = xp.cuda.get_allocator()
        pointer = allocate(1000)
        assert type(pointer) is xp.cuda.MemoryPointer
        assert (pointer.mem.size, pointer.mem.ptr) == (1024, pointer.ptr)
        assert xp.cuda.alloc(513).mem.size == 1024
        assert allocate(0).mem.size == 0
        assert callable(allocate.__wrapped__)

    def test_using_allocator_puts_the_allocator_in_force(self, xp: Any) -> None:
        allocate = xp.cuda.get_allocator()
        with xp.cuda.using_allocator(xp.get_default_memory_pool().malloc):
            foreign = xp.empty(1000, "B")
            with xp.cuda.using_allocator(allocate):
                own = xp.empty(1000, "B")
        assert xp.cuda.get_allocator() is allocate
        assert type(foreign.data.mem) is not type(own.data.mem)
        assert foreign.data.mem.size == own.data.mem.size == 1024
        assert block_of(own)["size"] == 1024

    @pytest.mark.parametrize("size", ["x", None, -1, 1 << 70])
    def test_bad_sizes_are_refused_as_by_cupy(self, xp: Any, size: Any) -> None:
        with pytest.raises((TypeError, OverflowError)):
            xp.cuda.get_allocator()(size)

    def test_the_allocator_raises_out_of_memory_errors(self, xp: Any) -> None:
        with pytest.raises(tcuda.OutOfMemoryError):
            xp.cuda.get_allocator()(1 << 50)
        assert xp.cuda.get_allocator()(1000).mem.size == 1024
