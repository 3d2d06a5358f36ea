"""Pools of memory: allocation in a pool, its figures, and the end of its memory."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.busy_streams import LONG
from support.devices import last_device
from support.pools import held_by, pool_of
from support.sizes import KIB, MIB
from support.threads import in_thread, in_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from support.fixture_types import Changes, HoldAtMost
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")

COMMON = (0, 0)
FIGURES = ("current", "peak", "allocated", "freed")


class TestNumbers:
    def test_every_pool_has_its_own_id(self, runtime: Runtime) -> None:
        numbers = [tcuda.MemPool().id, tcuda.graph_pool_handle(), tcuda.MemPool().id, tcuda.graph_pool_handle()]
        assert [first for first, _ in numbers] == [0, 0, 0, 0]
        assert [second for _, second in numbers] == list(range(numbers[0][1], numbers[0][1] + 4))
        assert numbers[0][1] > 0
        assert all(type(number) is tuple for number in numbers)

    def test_threads_never_get_the_same_id(self, runtime: Runtime) -> None:
        numbers: list[tuple[int, int]] = []
        together = threading.Barrier(4)

        def take() -> None:
            together.wait()
            for _ in range(25):
                numbers.extend([tcuda.graph_pool_handle(), tcuda.MemPool().id])

        in_threads(take, 4 * [()])
        assert len(set(numbers)) == 200

    def test_the_allocator_of_a_pool_without_a_library_is_none(self, runtime: Runtime) -> None:
        assert tcuda.MemPool().allocator is None


class TestUsing:
    def test_arrays_in_the_scope_come_from_the_pool(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        before = xp.empty(1000, "B")
        with changes() as changed, tcuda.use_mem_pool(pool):
            inside = xp.empty(1000, "B")
        after = xp.empty(1000, "B")
        assert (pool_of(before), pool_of(inside), pool_of(after)) == (COMMON, pool.id, COMMON)
        assert changed["reserved_bytes.all.current"] == 2 * MIB
        del before, inside, after

    def test_scopes_nest(self, xp: Any) -> None:
        outer, inner = tcuda.MemPool(), tcuda.MemPool()
        used = []
        with tcuda.use_mem_pool(outer):
            used.append(pool_of(xp.empty(1000)))
            with tcuda.use_mem_pool(inner):
                used.append(pool_of(xp.empty(1000)))
                with tcuda.use_mem_pool(outer):
                    used.append(pool_of(xp.empty(1000)))
                used.append(pool_of(xp.empty(1000)))
            used.append(pool_of(xp.empty(1000)))
        assert used == [outer.id, inner.id, outer.id, inner.id, outer.id]

    def test_an_exception_ends_the_scope(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with pytest.raises(KeyError), tcuda.use_mem_pool(pool):
            raise KeyError
        assert pool_of(xp.empty(1000)) == COMMON
        assert pool.use_count() == 1

    def test_every_thread_has_its_own_scopes(self, xp: Any) -> None:
        pools = [tcuda.MemPool() for _ in range(3)]
        together = threading.Barrier(4)
        used: dict[int, tuple[int, int]] = {}

        def work(number: int) -> None:
            with tcuda.use_mem_pool(pools[number]):
                together.wait()  # now every thread is in its scope
                used[number] = pool_of(xp.empty(1000))
                together.wait()

        threads = [threading.Thread(target=work, args=[number]) for number in range(3)]
        for thread in threads:
            thread.start()
        together.wait()
        mine = pool_of(xp.empty(1000))
        together.wait()
        for thread in threads:
            thread.join()
        assert mine == COMMON
        assert used == {number: pools[number].id for number in range(3)}

    def test_a_thread_that_is_started_in_the_scope_does_not_use_the_pool(self, xp: Any) -> None:
        with tcuda.use_mem_pool(tcuda.MemPool()):
            assert in_thread(lambda: pool_of(xp.empty(1000))) == COMMON

    def test_buffers_without_arrays_come_from_the_pool(self, runtime: Runtime) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            address = tcuda.caching_allocator_alloc(1000)
        assert [segment["address"] for segment in pool.snapshot()] == [address]
        tcuda.caching_allocator_delete(address)

    def test_freed_memory_of_the_pool_is_reused_only_in_the_pool(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            address = xp.empty(1000).data.ptr
        assert xp.empty(1000).data.ptr != address
        with tcuda.use_mem_pool(pool):
            assert xp.empty(1000).data.ptr == address

    def test_every_stream_has_its_own_memory_in_the_pool(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        side = tcuda.Stream()
        with tcuda.use_mem_pool(pool):
            kept = xp.empty(1000)
            with tcuda.stream(side):
                other = xp.empty(1000)
        assert {segment["stream"] for segment in pool.snapshot()} == {0, side.cuda_stream}
        assert pool_of(kept) == pool_of(other) == pool.id
        del kept, other

    def test_a_pool_stays_usable_after_an_out_of_memory_error(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            with pytest.raises(tcuda.OutOfMemoryError):
                xp.empty(1 << 50, "B")
            assert pool_of(xp.empty(1000)) == pool.id

    @pytest.mark.parametrize("what", [None, 5, "pool", (0, 1)])
    def test_only_a_pool_can_be_used(self, xp: Any, what: Any) -> None:
        with (
            pytest.raises(TypeError, match=rf"use_mem_pool\(\) takes a tcuda.MemPool; got {type(what).__name__}."),
            tcuda.use_mem_pool(what),
        ):
            pass
        assert pool_of(xp.empty(1000)) == COMMON

    @pytest.mark.parametrize("what", [5, "pool", (0, 1), object()])
    def test_only_an_allocator_can_be_the_allocator_of_a_pool(self, runtime: Runtime, what: Any) -> None:
        with pytest.raises(TypeError, match="Expected a tcuda.memory.CUDAPluggableAllocator, or what its allocator()"):
            tcuda.MemPool(what)


class TestCounting:
    def test_use_count_counts_the_pool_and_its_scopes(self, runtime: Runtime) -> None:
        pool = tcuda.MemPool()
        assert pool.use_count() == 1
        with tcuda.use_mem_pool(pool):
            assert pool.use_count() == 2
            with tcuda.use_mem_pool(pool):
                assert pool.use_count() == 3
            assert pool.use_count() == 2
        assert pool.use_count() == 1

    def test_every_device_has_its_own_use_count(self, runtime: Runtime) -> None:
        last = last_device()
        if last == 0:
            pytest.skip("needs two devices, and there is one")
        pool = tcuda.MemPool()
        with tcuda.device(last):
            assert pool.use_count() == 0
            with tcuda.use_mem_pool(pool):
                assert pool.use_count() == 2
            assert pool.use_count() == 1
        assert pool.use_count() == 1


class TestDevices:
    def test_a_pool_has_memory_of_every_device_on_which_it_was_used(self, xp: Any) -> None:
        last = last_device()
        pool = tcuda.MemPool()
        arrays = []
        for device in {0, last}:
            with tcuda.device(device), tcuda.use_mem_pool(pool):
                arrays.append(xp.empty(1000))
        assert {pool_of(array) for array in arrays} == {pool.id}
        assert {segment["device"] for segment in pool.snapshot()} == {0, last}
        number = pool.id
        del arrays, pool
        assert held_by(number) == 0

    def test_the_scope_concerns_only_its_device(self, xp: Any) -> None:
        last = last_device()
        if last == 0:
            pytest.skip("needs two devices, and there is one")
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool, f"cuda:{last}"):
            assert pool_of(xp.empty(1000)) == COMMON
            with tcuda.device(last):
                assert pool_of(xp.empty(1000)) == pool.id
        with tcuda.use_mem_pool(pool), tcuda.device(last):
            assert pool_of(xp.empty(1000)) == COMMON

    def test_an_invalid_device_is_refused(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        count = tcuda.device_count()
        with (
            pytest.raises(RuntimeError, match=f"Invalid device argument {count}: did you call init"),
            tcuda.use_mem_pool(pool, count),
        ):
            pass
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"), tcuda.use_mem_pool(pool, "cpu"):
            pass
        assert pool.use_count() == 1
        assert pool_of(xp.empty(1000)) == COMMON


class TestSnapshot:
    def test_a_snapshot_of_a_pool_has_only_its_segments(self, xp: Any) -> None:
        pool, other = tcuda.MemPool(), tcuda.MemPool()
        assert pool.snapshot() == []
        outside = xp.empty(1000, "B")
        with tcuda.use_mem_pool(other):
            elsewhere = xp.empty(1000, "B")
        with tcuda.use_mem_pool(pool):
            inside = xp.empty(1000, "B")
        [segment] = pool.snapshot()
        assert segment["segment_pool_id"] == pool.id
        assert segment["address"] == inside.data.ptr
        assert (segment["total_size"], segment["allocated_size"], segment["requested_size"]) == (2 * MIB, 1 * KIB, 1000)
        assert tcuda.memory_snapshot(pool.id) == pool.snapshot(include_traces=False) == [segment]
        everything = tcuda.memory_snapshot()
        assert segment in everything
        assert {other.id, pool.id, COMMON} <= {segment["segment_pool_id"] for segment in everything}
        assert {segment["segment_pool_id"] for segment in tcuda.memory_snapshot(COMMON)} == {COMMON}
        assert tcuda.memory_snapshot(tcuda.graph_pool_handle()) == []
        del outside, elsewhere, inside


class TestGivingBack:
    def test_free_memory_stays_as_long_as_the_pool_lives(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            xp.empty(1000)
        tcuda.empty_cache()
        assert held_by(pool.id) == 2 * MIB

    def test_free_memory_stays_if_the_cache_is_emptied_in_the_scopes_of_threads(self, xp: Any) -> None:
        pools = [tcuda.MemPool() for _ in range(4)]

        def use(pool: tcuda.MemPool) -> None:
            with tcuda.use_mem_pool(pool):
                xp.empty(4, "f4")
                tcuda.empty_cache()

        in_threads(use, [(pool,) for pool in pools])
        assert [len(pool.snapshot()) for pool in pools] == [1, 1, 1, 1]

    def test_memory_goes_back_with_the_pool_if_its_arrays_are_dropped_first(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            array = xp.empty(1000)
        del array
        with changes() as changed:
            del pool
        assert changed["reserved_bytes.all.current"] == -2 * MIB
        assert changed["segment.all.current"] == -1

    def test_memory_goes_back_with_the_last_array_if_the_pool_is_dropped_first(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        number = pool.id
        with tcuda.use_mem_pool(pool):
            array = xp.arange(1000)
        with changes() as changed:
            del pool
        assert "reserved_bytes.all.current" not in changed
        assert int(array.sum()) == 499_500
        assert pool_of(array) == number
        tcuda.synchronize()  # a free does not wait for streams
        del array
        assert held_by(number) == 0

    def test_unused_segments_go_back_with_the_pool_and_used_segments_stay(self, xp: Any, changes: Changes) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            small, large = xp.empty(1000), xp.empty(40 * MIB, "B")
        del large
        with changes() as changed:
            del pool
        assert changed["reserved_bytes.large_pool.current"] == -40 * MIB
        assert "reserved_bytes.small_pool.current" not in changed
        del small

    def test_memory_of_a_pool_that_is_gone_makes_room_when_memory_is_short(
        self, xp: Any, hold_at_most: HoldAtMost
    ) -> None:
        with hold_at_most(60 * MIB):
            pool = tcuda.MemPool()
            with tcuda.use_mem_pool(pool):
                array = xp.empty(40 * MIB, "B")
            del pool
            del array
            xp.empty(50 * MIB, "B")

    def test_the_end_of_a_pool_waits_for_work_on_its_memory(self, xp: Any, changes: Changes) -> None:
        pool, side = tcuda.MemPool(), tcuda.Stream()
        with tcuda.use_mem_pool(pool), tcuda.stream(side):
            xp.empty(1000)
            tcuda._sleep(LONG)
        assert not side.query()
        with changes() as changed:
            del pool
        assert changed["reserved_bytes.all.current"] == -2 * MIB
        assert side.query()

    def test_a_scope_keeps_its_pool_alive(self, xp: Any) -> None:
        with tcuda.use_mem_pool(tcuda.MemPool()):
            gc.collect()
            kept = [xp.empty(1000) for _ in range(3)]
            assert len({pool_of(array) for array in kept} | {COMMON}) == 2
        del kept

    def test_a_pool_in_a_garbage_cycle_is_collected(self, xp: Any) -> None:
        class Owner:
            pass

        owner = Owner()
        owner.pool = tcuda.MemPool()  # type: ignore[attr-defined]
        owner.myself = owner  # type: ignore[attr-defined]
        number = owner.pool.id  # type: ignore[attr-defined]
        with tcuda.use_mem_pool(owner.pool):  # type: ignore[attr-defined]
            xp.empty(1000)
        assert held_by(number) == 2 * MIB
        del owner
        gc.collect()
        assert held_by(number) == 0


@pytest.mark.usefixtures("statistics_of_no_scope")
class TestStatistics:
    """``reserved_bytes_by_private_pools``, as torch has had it since version 2.13."""

    @staticmethod
    def figures(pool: tuple[int, int], kind: str = "all", device: int | None = None) -> tuple[int, ...] | None:
        """Return the current, peak, allocated and freed bytes of a pool; None if the statistics lack the pool."""
        pools = tcuda.memory_stats_as_nested_dict(device)["reserved_bytes_by_private_pools"]
        return None if pool not in pools else tuple(pools[pool][kind][each] for each in FIGURES)

    def test_a_pool_has_the_figures_of_its_segments(self, xp: Any) -> None:
        pool, other = tcuda.MemPool(), tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            small, large = xp.empty(1000, "B"), xp.empty(3 * MIB, "B")
        with tcuda.use_mem_pool(other):
            apart = xp.empty(1000, "B")
        outside = xp.empty(1000, "B")
        held = held_by(pool.id)
        assert self.figures(pool.id) == (held, held, held, 0)
        assert self.figures(pool.id, "small_pool") == (2 * MIB, 2 * MIB, 2 * MIB, 0)
        assert self.figures(pool.id, "large_pool") == (held - 2 * MIB, held - 2 * MIB, held - 2 * MIB, 0)
        assert self.figures(other.id) == (2 * MIB, 2 * MIB, 2 * MIB, 0)
        assert self.figures(COMMON) is None
        stats = tcuda.memory_stats()
        assert stats[f"reserved_bytes_by_private_pools.0_{pool.id[1]}.all.current"] == held
        assert list(stats) == sorted(stats)
        del small, large, apart, outside

    def test_a_pool_keeps_its_figures_until_its_memory_is_given_back(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            kept = xp.empty(3 * MIB, "B")
        number, most = pool.id, held_by(pool.id)
        del pool
        held = held_by(number)  # without the pieces that no array needs
        assert self.figures(number) == (held, most, most, most - held)
        assert held >= 3 * MIB
        del kept
        tcuda.synchronize()
        assert held_by(number) == 0
        assert self.figures(number) is None

    def test_figures_are_in_the_order_of_their_names(self, xp: Any) -> None:
        first = tcuda.MemPool()
        longer = 10 ** len(str(first.id[1]))
        while tcuda.graph_pool_handle()[1] < longer:  # the text of a later number is earlier, as with 9 and 10
            pass
        second = tcuda.MemPool()
        kept = []
        for pool in (first, second):
            with tcuda.use_mem_pool(pool):
                kept.append(xp.empty(1000, "B"))
        names = list(tcuda.memory_stats())
        assert names == sorted(names)
        of_pools = [name.split(".")[1] for name in names if name.startswith("reserved_bytes_by_private_pools.")]
        assert of_pools.index(f"0_{second.id[1]}") < of_pools.index(f"0_{first.id[1]}")
        assert of_pools.count(f"0_{first.id[1]}") == 12
        del kept

    def test_pools_that_are_gone_cost_statistics_nothing(self, xp: Any) -> None:
        before = len(tcuda.memory_stats())
        for _ in range(20):
            pool = tcuda.MemPool()
            with tcuda.use_mem_pool(pool):
                x = xp.empty(1000, "B")
            del x, pool
        assert len(tcuda.memory_stats()) == before

    def test_resets_leave_what_a_pool_has(self, xp: Any) -> None:
        pool = tcuda.MemPool()
        with tcuda.use_mem_pool(pool):
            kept = xp.empty(1000, "B")
        tcuda.reset_accumulated_memory_stats()
        tcuda.reset_peak_memory_stats()
        assert self.figures(pool.id) == (2 * MIB, 2 * MIB, 0, 0)
        with tcuda.use_mem_pool(pool):
            more = xp.empty(3 * MIB, "B")
        assert self.figures(pool.id) == (held_by(pool.id), held_by(pool.id), held_by(pool.id) - 2 * MIB, 0)
        del kept, more

    def test_the_pool_of_a_graph_is_a_private_pool(self, xp: Any) -> None:
        x = xp.ones(1000, "float32")
        numbers = []
        for _ in range(3):  # a capture may get the memory of a graph that is gone, under a number of its own
            graph = tcuda.CUDAGraph()
            with tcuda.graph(graph):
                y = x + 1
            numbers.append(graph.pool())
            assert self.figures(numbers[-1]) == (held_by(numbers[-1]),) * 3 + (0,)
            del y
            graph.reset()
            del graph
            gc.collect()
            tcuda.synchronize()
        assert [self.figures(number) for number in numbers[:2]] == [None, None]
        tcuda.empty_cache()
        assert self.figures(numbers[2]) is None
        del x

    def test_each_device_has_its_own_figures(self, xp: Any) -> None:
        last = last_device()
        if last == 0:
            pytest.skip("needs two devices, and there is one")
        pool = tcuda.MemPool()
        with tcuda.device(last), tcuda.use_mem_pool(pool):
            kept = xp.empty(1000, "B")
        assert self.figures(pool.id, device=0) is None
        assert self.figures(pool.id, device=last) == (2 * MIB, 2 * MIB, 2 * MIB, 0)
        del kept

    def test_expandable_and_other_segments_count(
        self, xp: Any, alloc_settings: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        for setting in ("True", "False"):
            with alloc_settings(f"expandable_segments:{setting}"):
                pool = tcuda.MemPool()
                with tcuda.use_mem_pool(pool):
                    kept = xp.empty(1000, "B")
                assert self.figures(pool.id) == (held_by(pool.id), held_by(pool.id), held_by(pool.id), 0)
                del kept, pool

    def test_nested_statistics_have_no_pool_without_pools(self, xp: Any) -> None:
        assert tcuda.memory_stats_as_nested_dict()["reserved_bytes_by_private_pools"] == {}


class TestOptions:
    def test_use_on_oom_lends_free_memory_when_no_other_memory_is_left(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        for allowed in (False, True):
            pool = tcuda.MemPool(use_on_oom=allowed)
            with hold_at_most(60 * MIB):
                with tcuda.use_mem_pool(pool):
                    address = xp.empty(40 * MIB, "B").data.ptr
                if allowed:
                    borrowed = xp.empty(30 * MIB, "B")
                    assert borrowed.data.ptr == address
                    assert pool_of(borrowed) == pool.id
                    small = xp.empty(1000)
                    assert pool_of(small) == COMMON  # a pool lends memory only if no other memory is left
                    del borrowed, small
                else:
                    with pytest.raises(tcuda.OutOfMemoryError):
                        xp.empty(30 * MIB, "B")
            with tcuda.use_mem_pool(pool):
                assert xp.empty(40 * MIB, "B").data.ptr == address
            del pool

    def test_borrowed_memory_goes_back_to_the_pool(self, xp: Any, hold_at_most: HoldAtMost) -> None:
        pool = tcuda.MemPool(use_on_oom=True)
        with hold_at_most(60 * MIB):
            with tcuda.use_mem_pool(pool):
                xp.empty(40 * MIB, "B")
            borrowed = xp.empty(30 * MIB, "B")
            number = pool.id
            del pool
            assert pool_of(borrowed) == number
            del borrowed
            xp.empty(50 * MIB, "B")
        assert held_by(number) == 0

    def test_no_split_gives_every_array_a_segment(self, xp: Any) -> None:
        pool = tcuda.MemPool(no_split=True)
        with tcuda.use_mem_pool(pool):
            arrays = [xp.empty(1000, "B"), xp.empty(1000, "B"), xp.empty(3 * MIB, "B"), xp.empty(3 * MIB, "B")]
        segments = pool.snapshot()
        assert sorted(segment["address"] for segment in segments) == sorted(array.data.ptr for array in arrays)
        assert [len(segment["blocks"]) for segment in segments] == [1, 1, 1, 1]
        del arrays

    def test_no_split_gives_every_array_a_segment_without_expandable_segments(
        self, xp: Any, alloc_settings: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        with alloc_settings("expandable_segments:False"):
            for no_split, sizes in ((True, [2, 2, 20, 20]), (False, [2, 20])):
                pool = tcuda.MemPool(no_split=no_split)
                with tcuda.use_mem_pool(pool):
                    arrays = [xp.empty(1000, "B"), xp.empty(1000, "B"), xp.empty(3 * MIB, "B"), xp.empty(3 * MIB, "B")]
                assert sorted(segment["total_size"] // MIB for segment in pool.snapshot()) == sizes
                del arrays
                with tcuda.use_mem_pool(pool):  # whole segments are used again
                    again = [xp.empty(1000, "B"), xp.empty(5 * MIB, "B")]
                assert sorted(segment["total_size"] // MIB for segment in pool.snapshot()) == sizes
                del again, pool
