"""The memory of graphs: its pools, the graphs that share it, and its return."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

import tcuda
from support.captures import MODES, captured
from support.pools import held_by, pool_of, settle
from support.sizes import MIB
from support.threads import in_thread, in_threads
from tcuda._process.ledger import ledger

pytestmark = pytest.mark.usefixtures("allocator_as_found")


class TestMemory:
    @pytest.mark.parametrize("mode", MODES)
    def test_comes_from_a_pool_of_the_graph(self, xp: Any, graph: tcuda.CUDAGraph, mode: str) -> None:
        _, y = captured(lambda: xp.zeros(64 * MIB, xp.uint8), graph, capture_error_mode=mode)
        pool = graph.pool()
        assert pool != (0, 0)
        assert held_by(pool) >= 64 * MIB
        [block] = [
            block
            for segment in tcuda.memory_snapshot(pool)
            for block in segment["blocks"]
            if block["address"] == y.data.ptr
        ]
        assert block["state"] == "active_allocated"

    def test_is_used_again_within_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        addresses = []
        x = xp.ones(10_000)
        with tcuda.graph(graph):
            total = xp.zeros(10_000)
            for _ in range(5):
                temporary = x * 2
                addresses.append(temporary.data.ptr)
                total += temporary
                del temporary
        assert len(set(addresses)) == 1
        for _ in range(2):
            graph.replay()
            assert (total.get() == 10).all()

    def test_is_not_reused_by_other_arrays_while_the_graph_lives(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.ones(1000)
        with tcuda.graph(graph):
            temporary = x * 2
            address = temporary.data.ptr
            y = temporary + 1
            del temporary
        others = [xp.zeros(1000) for _ in range(50)]
        assert address not in [other.data.ptr for other in others]
        graph.replay()
        assert (y.get() == 3).all()
        assert all((other.get() == 0).all() for other in others)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_of_the_matrices_of_a_product_is_kept(self, xp: Any, graph: tcuda.CUDAGraph, dtype: str) -> None:
        left, right, out = (xp.ones((256, 256), dtype) for _ in range(3))
        xp.matmul(left, right, out=out)
        captured(lambda: xp.matmul(left, right, out=out), graph)
        places = {left.data.ptr, right.data.ptr}
        left = right = None
        settle()
        others = [xp.zeros((256, 256), dtype) for _ in range(8)]
        assert not places & {other.data.ptr for other in others}
        graph.replay()
        assert (out.get() == 256).all()

    def test_goes_back_when_the_graph_is_reset(self, xp: Any) -> None:
        tcuda.empty_cache()
        before = tcuda.memory_reserved()
        graph, y = captured(lambda: xp.zeros(64 * MIB, xp.uint8))
        pool = graph.pool()
        del y
        assert tcuda.memory_reserved() >= before + 64 * MIB
        graph.replay()
        graph.reset()
        settle()
        assert held_by(pool) == 0
        tcuda.empty_cache()
        assert tcuda.memory_reserved() == before

    def test_goes_back_when_the_graph_is_dropped(self, xp: Any) -> None:
        tcuda.empty_cache()
        before = tcuda.memory_reserved()
        graph, y = captured(lambda: xp.zeros(64 * MIB, xp.uint8))
        graph.replay()
        died = weakref.ref(graph)
        pool = graph.pool()
        del y, graph
        assert died() is None
        settle()
        assert held_by(pool) == 0
        tcuda.empty_cache()
        assert tcuda.memory_reserved() == before

    def test_of_arrays_outlives_the_graph(self, xp: Any) -> None:
        tcuda.empty_cache()
        before = tcuda.memory_reserved()
        graph, y = captured(lambda: xp.full(1000, 7.0))
        graph.replay()
        del graph
        others = [xp.zeros(1000) for _ in range(20)]
        assert (y.get() == 7).all()
        del y, others
        tcuda.empty_cache()
        assert tcuda.memory_reserved() == before

    def test_of_arrays_stays_while_other_streams_use_it(self, xp: Any) -> None:
        tcuda._sleep(10)
        graph, y = captured(lambda: xp.full(1000, 7.0))
        pool = graph.pool()
        graph.replay()
        graph.reset()
        tcuda._sleep(20_000_000)
        z = y + 1  # the memory was not recorded for the default stream
        del y
        assert held_by(pool) > 0
        assert (z.get() == 8).all()
        tcuda.empty_cache()
        assert held_by(pool) == 0

    def test_stays_until_the_replay_that_is_running_is_done(self, xp: Any) -> None:
        x, y = [xp.zeros(1000)], xp.zeros(1000)

        def slowly() -> None:
            tcuda._sleep(20_000_000)
            temporary = x[0] + 1
            y.__iadd__(temporary)

        tcuda._sleep(10)  # loads the kernel before the capture
        graph, _ = captured(slowly)
        with tcuda.stream(tcuda.Stream()):
            graph.replay()
        x.clear()
        graph.reset()
        others = [xp.full(1000, 5.0) for _ in range(10)]
        tcuda.synchronize()
        assert (y.get() == 1).all()
        del others

    def test_is_shared_through_a_handle(self, xp: Any) -> None:
        handle = tcuda.graph_pool_handle()
        first, y = captured(lambda: xp.zeros(1000), pool=handle)
        address = y.data.ptr
        del y
        second, z = captured(lambda: xp.ones(1000), pool=handle)
        third, w = captured(lambda: xp.full(1000, 3.0), pool=first.pool())
        assert first.pool() == second.pool() == third.pool() == handle
        assert z.data.ptr == address
        assert w.data.ptr != address
        first.reset()
        assert held_by(handle) > 0
        for graph in (second, third):
            graph.replay()
        assert (z.get() == 1).all()
        assert (w.get() == 3).all()
        second.reset()
        third.reset()
        del z, w
        tcuda.empty_cache()
        assert held_by(handle) == 0

    @pytest.mark.parametrize("device", [0, pytest.param(1, marks=pytest.mark.multigpu)])
    def test_comes_from_a_pool_of_the_program(self, xp: Any, device: int) -> None:
        pool = tcuda.MemPool()  # opened on the device 0
        with tcuda.device(device):
            graph, y = captured(lambda: xp.full(1000, 2.0), pool=pool)
            assert graph.pool() == pool.id
            assert pool_of(y) == pool.id
            del pool  # the graph and the array keep the memory
            graph.replay()
            assert (y.get() == 2).all()

    def test_of_a_pool_in_the_capture_is_kept_with_the_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        pool, y = tcuda.MemPool(), xp.zeros(1000)
        with tcuda.graph(graph):
            with tcuda.use_mem_pool(pool):
                x = xp.full(1000, 3.0)
            y[...] = x * 2
            assert pool_of(x) == pool.id
            del x
        handle = pool.id
        assert graph.pools() == [graph.pool(), handle]
        del pool
        tcuda.synchronize()
        tcuda.empty_cache()
        assert held_by(handle) > 0
        graph.replay()
        assert (y.get() == 6).all()
        graph.reset()
        tcuda.empty_cache()
        assert held_by(handle) == 0
        with pytest.raises(RuntimeError, match="without a preceding successful capture"):
            graph.pools()

    def test_of_other_threads_comes_from_the_common_pool(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with tcuda.graph(graph):
            y = xp.zeros(1000)
            made = in_thread(xp.empty, 32 * MIB, xp.uint8)
        assert pool_of(y) == graph.pool()
        assert pool_of(made) == (0, 0)

    def test_of_captured_streams_of_other_devices_belongs_to_the_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        if tcuda.device_count() < 2:
            pytest.skip("needs two devices")
        side = tcuda.Stream(1)
        with tcuda.device(1):
            x = xp.full(1000, 3.0)
            tcuda.synchronize()
        with tcuda.graph(graph):
            here, fork, join = tcuda.current_stream(), tcuda.Event(), tcuda.Event()
            fork.record()
            with tcuda.stream(side):
                fork.wait()
                y = x * 2
                z = y + 1
                address = y.data.ptr
                del y
                join.record()
            join.wait(here)
        pool = tcuda.memory_snapshot(graph.pool())
        assert any(s["device"] == 1 and s["address"] <= address < s["address"] + s["total_size"] for s in pool)
        with tcuda.device(1):
            del x
            others = [xp.zeros(1000) for _ in range(30)]
        graph.replay()
        tcuda.synchronize(0)
        with tcuda.device(1):
            assert (z.get() == 7).all()
            assert all((other.get() == 0).all() for other in others)
        graph.reset()
        del z, others
        tcuda.empty_cache()
        assert tcuda.memory_snapshot(pool[0]["segment_pool_id"]) == []

    @pytest.mark.parametrize("mode", ["thread_local", "relaxed"])
    def test_of_captures_in_two_threads_is_separate(self, xp: Any, mode: str) -> None:
        x = xp.arange(1000.0)
        tcuda.synchronize()
        meet = threading.Barrier(2)
        found: list[tuple[tcuda.CUDAGraph, Any]] = []

        def work(number: int) -> None:
            graph = tcuda.CUDAGraph()
            with tcuda.stream(tcuda.Stream()):
                graph.capture_begin(capture_error_mode=mode)
                meet.wait()
                y = x + number
                meet.wait()
                y *= 2
                graph.capture_end()
                graph.replay()
                tcuda.current_stream().synchronize()
            found.append((graph, y))

        (x + 1) * 2
        in_threads(work, zip(range(2)))
        assert len({graph.pool() for graph, _ in found}) == 2
        assert all(pool_of(y) == graph.pool() for graph, y in found)
        assert sorted(float(y.get()[0]) for _, y in found) == [0.0, 2.0]

    def test_of_a_stream_that_does_not_capture_comes_from_the_common_pool(
        self, xp: Any, graph: tcuda.CUDAGraph
    ) -> None:
        with tcuda.graph(graph):
            xp.zeros(1000)
            with tcuda.stream(tcuda.Stream()):
                apart = xp.empty(1000)
        assert pool_of(apart) == (0, 0)

    def test_can_be_allocated_on_side_streams(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        side = tcuda.Stream()
        with tcuda.graph(graph):
            side.wait_stream(tcuda.current_stream())
            with tcuda.stream(side):
                y = xp.full(32 * MIB // 8, 2.0)
            tcuda.current_stream().wait_stream(side)
        graph.replay()
        tcuda.synchronize()
        assert (y.get() == 2).all()
        assert pool_of(y) == graph.pool()

    @pytest.mark.alone
    def test_stays_constant_over_a_thousand_captures(self, xp: Any) -> None:
        graph, stream = tcuda.CUDAGraph(), tcuda.Stream()
        reserved = set()
        for turn in range(1_000):
            with tcuda.stream(stream):
                graph.capture_begin()
                y = xp.zeros(10)
                graph.capture_end()
                if turn % 3 == 0:
                    graph.replay()
            del y
            tcuda.synchronize()
            graph.reset()
            reserved.add(tcuda.memory_reserved())
        assert len(reserved) <= 3  # the event behind a graph may be complete only when the next graph is released

    @pytest.mark.alone
    @pytest.mark.gpu
    def test_stays_constant_over_ten_thousand_captures(self, xp: Any) -> None:
        graph, stream = tcuda.CUDAGraph(), tcuda.Stream()
        x = xp.zeros(10)

        def capture() -> None:
            with tcuda.stream(stream):
                graph.capture_begin()
                y = x + 1
                graph.capture_end()
            del y
            graph.reset()

        capture()  # loads kernels and creates the handle of cuBLAS
        tcuda.empty_cache()
        free, _ = tcuda.mem_get_info()
        reserved = tcuda.memory_reserved()
        for _ in range(10_000):
            capture()
        tcuda.empty_cache()
        assert tcuda.memory_reserved() == reserved
        assert tcuda.mem_get_info()[0] > free - 64 * MIB


def test_a_graph_holds_the_blocks_around_the_addresses_of_its_kernels() -> None:
    """Kernels have pointers into the middle of arrays, and numbers that are no addresses."""
    known = ledger()
    sizes = [512, 1536, 100, 700_000, 3 << 20, 10 << 20] * 5
    blocks = [(known.allocate(0, size, 0), size) for size in sizes]
    gaps = blocks[::5]
    kept = [block for block in blocks if block not in gaps]
    for address, _ in gaps:
        known.free(address)
    pool = (0, known.next_pool())
    for device in range(tcuda.device_count()):
        known.create_pool(device, pool, None, True, False)
    inside = [address + at for address, size in kept for at in (1, size // 2, size - 1)]
    outside = [address + at for address, size in gaps for at in (0, size // 2)]
    outside += [65_536, 1 << 40, (1 << 64) - 1, max(blocks)[0] + (1 << 34)]
    outside += [max(kept[0][0] - (1 << 34), 0)]  # a driver may begin with small addresses
    try:
        begins = sorted(address for address, _ in kept)
        for addresses in (inside, [*outside, *reversed(inside)], [address for address, _ in kept]):
            for device in range(tcuda.device_count()):
                known.create_pool(device, pool, None, True, False)
            held = known.hold(addresses, 1)
            known.release_graph(pool, held, False)
            assert sorted(held) == begins
        assert known.hold(outside, 1) == []
    finally:
        for device in range(tcuda.device_count()):
            known.release_pool(device, pool)
        for address, _ in kept:
            known.free(address)
