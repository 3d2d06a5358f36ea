"""CUDA graphs: capture, replay, their memory, their random numbers, their end."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.pools import held_by, pool_of
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")

KIB, MIB = 1 << 10, 1 << 20
MODES = ["global", "thread_local", "relaxed"]


def captured(function: Callable[[], Any], graph: tcuda.CUDAGraph | None = None, **options: Any) -> Any:
    """Capture ``function`` and return the graph and what it returned."""
    graph = graph or tcuda.CUDAGraph()
    with tcuda.graph(graph, **options):
        result = function()
    return graph, result


def nothing_captures() -> bool:
    """Whether all is as if no capture had ever been: the streams, and where memory comes from."""
    side = tcuda.graph.default_capture_stream
    made = tcuda.xp.zeros(10)
    return (
        not tcuda.is_current_stream_capturing()
        and (side is None or not side.is_capturing())
        and tcuda.current_stream() == tcuda.default_stream()
        and bool((made.get() == 0).all())
    )


class TestReplay:
    def test_works_on_the_memory_of_the_capture(self, xp: Any) -> None:
        x = xp.arange(10.0)
        graph, y = captured(lambda: xp.sqrt(x) + 1)
        for first in (0.0, 100.0):
            x[...] = xp.arange(first, first + 10)
            graph.replay()
            assert (y.get() == (xp.sqrt(x) + 1).get()).all()

    def test_runs_what_the_capture_only_noted(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        with tcuda.graph(graph):
            x += 1
        assert (x.get() == 0).all()
        for times in (1, 2, 3):
            graph.replay()
            assert (x.get() == times).all()

    def test_is_work_of_the_current_stream(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, stream, event = xp.zeros(10), tcuda.Stream(), tcuda.Event()
        captured(lambda: x.__iadd__(1), graph)
        tcuda.synchronize()
        with tcuda.stream(stream):
            tcuda._sleep(10_000_000)
            graph.replay()
            event.record()
        assert not event.query()
        event.synchronize()
        assert (x.get() == 1).all()

    def test_each_launch_follows_the_one_before(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x.__iadd__(1), graph)
        for _ in range(50):
            graph.replay()
        assert (x.get() == 50).all()

    @pytest.mark.parametrize("index", range(2))
    def test_goes_to_the_device_of_the_capture(self, xp: Any, index: int) -> None:
        if index >= tcuda.device_count():
            pytest.skip("needs more devices")
        with tcuda.device(index):
            x = xp.zeros(10)
            graph, _ = captured(lambda: x.__iadd__(1))
        with tcuda.device(tcuda.device_count() - 1 - index):
            graph.replay()
            here = tcuda.current_device()
        assert here == tcuda.device_count() - 1 - index
        with tcuda.device(index):
            assert (x.get() == 1).all()
            graph.reset()

    def test_of_a_graph_that_is_used_by_two_streams_keeps_their_order(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, streams = xp.zeros(1000), [tcuda.Stream(), tcuda.Stream()]
        captured(lambda: x.__iadd__(1), graph)
        tcuda.synchronize()
        for turn in range(20):
            with tcuda.stream(streams[turn % 2]):
                graph.replay()
        tcuda.synchronize()
        assert (x.get() == 20).all()


class TestCapture:
    @pytest.mark.parametrize("mode", MODES)
    def test_is_known_to_the_streams(self, runtime: Runtime, graph: tcuda.CUDAGraph, mode: str) -> None:
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            assert not tcuda.is_current_stream_capturing()
            graph.capture_begin(capture_error_mode=mode)
            assert tcuda.is_current_stream_capturing()
            assert stream.is_capturing()
            assert tcuda.CUDAGraph.get_currently_capturing_graph() is graph
            with tcuda.stream(tcuda.Stream()):
                assert not tcuda.is_current_stream_capturing()
                with pytest.raises(RuntimeError, match="not currently capturing"):
                    tcuda.CUDAGraph.get_currently_capturing_graph()
            tcuda.xp.zeros(10)
            graph.capture_end()
            assert not tcuda.is_current_stream_capturing()

    def test_spreads_to_the_streams_that_wait(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        side, x, y = tcuda.Stream(), xp.zeros(1000), xp.zeros(1000)
        with tcuda.graph(graph):
            here = tcuda.current_stream()
            x += 1
            side.wait_stream(here)
            with tcuda.stream(side):
                assert tcuda.is_current_stream_capturing()
                doubled = x * 2
            y += 5
            here.wait_stream(side)
            total = doubled + y
        assert not side.is_capturing()
        for times in (1, 2):
            graph.replay()
            assert (total.get() == 2 * times + 5 * times).all()

    def test_of_a_stream_that_is_not_joined_fails_and_leaves_nothing(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        side, x = tcuda.Stream(), xp.zeros(10)

        def work() -> None:
            side.wait_stream(tcuda.current_stream())
            with tcuda.stream(side):
                x.__iadd__(1)

        with pytest.raises(tcuda.AcceleratorError, match="unjoined") as caught:
            captured(work, graph)
        assert caught.value.error_code == 904
        assert nothing_captures()
        assert not side.is_capturing()

    def test_takes_the_stream_that_it_is_given(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        stream = tcuda.Stream()
        with tcuda.graph(graph, stream=stream):
            assert tcuda.current_stream() == stream
            xp.zeros(10)

    def test_is_on_a_stream_of_the_current_device(self, xp: Any) -> None:
        for index in (*range(tcuda.device_count()), 0):
            graph = tcuda.CUDAGraph()
            with tcuda.device(index):
                with tcuda.graph(graph):
                    assert tcuda.current_stream().device_index == index
                    xp.zeros(10)
                assert tcuda.current_device() == index
                graph.reset()

    def test_collects_garbage_and_empties_the_cache_before(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        class Holder:
            def __init__(self) -> None:
                self.itself = self
                self.array = xp.empty(32 * MIB, xp.uint8)

        gc.disable()
        try:
            Holder()
            before = tcuda.memory_reserved()
            captured(lambda: xp.zeros(10), graph)
        finally:
            gc.enable()
        assert tcuda.memory_reserved() <= before - 30 * MIB

    def test_of_nothing_warns(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with pytest.warns(UserWarning, match="The CUDA Graph is empty") as warned:
            captured(lambda: None, graph)
        assert warned[0].filename == __file__
        graph.replay()

    def test_after_a_reset_is_a_new_one(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x.__iadd__(1), graph)
        graph.reset()
        graph.reset()
        captured(lambda: x.__isub__(1), graph)
        graph.replay()
        assert (x.get() == -1).all()


class TestErrors:
    def test_torchs_for_what_comes_too_early(self, runtime: Runtime) -> None:
        graph = tcuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="^Called CUDAGraph::replay without a preceding successful capture.$"):
            graph.replay()
        with pytest.raises(RuntimeError, match=r"^Called CUDAGraph::pool\(\) without a preceding successful capture.$"):
            graph.pool()
        with pytest.raises(tcuda.AcceleratorError) as caught:
            graph.capture_end()
        assert caught.value.error_code == 401
        graph.reset()

    def test_a_graph_holds_one_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        captured(lambda: xp.zeros(10), graph)
        with pytest.raises(RuntimeError, match="already owns a captured graph"), tcuda.graph(graph):
            raise AssertionError("entered")
        assert nothing_captures()
        graph.replay()

    def test_the_default_stream_does_not_capture(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
            graph.capture_begin()
        assert nothing_captures()

    def test_an_unknown_mode(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with (
            pytest.raises(RuntimeError, match="Expected `global`, `thread_local`, or `relaxed`, got lax"),
            tcuda.graph(graph, capture_error_mode="lax"),
        ):
            raise AssertionError("entered")
        assert nothing_captures()

    @pytest.mark.parametrize("mode", [5, None, [], b"global"])
    def test_a_mode_that_is_no_text(self, runtime: Runtime, graph: tcuda.CUDAGraph, mode: Any) -> None:
        with (
            pytest.raises(TypeError, match="capture_error_mode must be a str"),
            tcuda.graph(graph, capture_error_mode=mode),
        ):
            raise AssertionError("entered")
        assert nothing_captures()

    @pytest.mark.parametrize("bad", [5, None, "graph", [], object()])
    def test_what_is_no_graph(self, runtime: Runtime, bad: Any) -> None:
        with pytest.raises(TypeError, match=r"tcuda\.graph\(\) takes a tcuda\.CUDAGraph; got"):
            tcuda.graph(bad)
        assert nothing_captures()

    @pytest.mark.parametrize("pool", [5, (0, 0), (0,), (1, "a"), (-1, 2), (1, 2**64), [0, 1]])
    def test_what_is_no_pool(self, runtime: Runtime, graph: tcuda.CUDAGraph, pool: Any) -> None:
        with pytest.raises(TypeError, match="pool (must be|is)"), tcuda.graph(graph, pool=pool):
            raise AssertionError("entered")
        assert nothing_captures()

    def test_a_stream_that_captures_already(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        other = tcuda.CUDAGraph()
        pools = {segment["segment_pool_id"] for segment in tcuda.memory_snapshot()}
        with tcuda.stream(tcuda.Stream()):
            graph.capture_begin(capture_error_mode="relaxed")
            with pytest.raises(tcuda.AcceleratorError) as caught:
                other.capture_begin()
            assert caught.value.error_code == 401
            xp.zeros(10)
            graph.capture_end()
        graph.replay()
        graph.reset()
        assert {segment["segment_pool_id"] for segment in tcuda.memory_snapshot()} == pools

    def test_a_capture_ends_on_its_stream(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with tcuda.stream(tcuda.Stream()):
            graph.capture_begin()
            with (
                pytest.raises(RuntimeError, match="must end on the same stream it began on"),
                tcuda.stream(tcuda.Stream()),
            ):
                graph.capture_end()
            with pytest.raises(RuntimeError, match="is being captured"):
                graph.reset()
            xp.zeros(10)
            graph.capture_end()
        graph.replay()

    def test_annotations_are_torchs(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with pytest.raises(NotImplementedError, match="enable_annotations"):
            tcuda.graph(graph, enable_annotations=True)

    def test_what_is_no_generator(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with pytest.raises(TypeError, match="expected a Generator, but got int"):
            graph.register_generator_state(5)  # type: ignore[arg-type]

    def test_a_replay_is_not_captured(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        inner, _ = captured(lambda: x.__iadd__(1))
        with tcuda.graph(graph):
            with pytest.raises(RuntimeError, match="cannot be replayed into another"):
                inner.replay()
            x += 10
        graph.replay()
        inner.replay()
        assert (x.get() == 11).all()

    def test_a_replay_on_another_stream_is_fine(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, stream = xp.zeros(10), tcuda.Stream()
        inner, _ = captured(lambda: x.__iadd__(1))
        with tcuda.graph(graph):
            with tcuda.stream(stream):
                inner.replay()
            y = xp.zeros(10)
        graph.replay()
        tcuda.synchronize()
        assert (x.get() == 1).all()
        assert (y.get() == 0).all()


SPOILING: dict[str, Callable[[Any], object]] = {
    "tcuda.synchronize()": lambda event: tcuda.synchronize(),
    "Stream.synchronize()": lambda event: tcuda.current_stream().synchronize(),
    "Stream.query()": lambda event: tcuda.current_stream().query(),
}
UNSAFE: dict[str, Callable[[Any], object]] = {
    **SPOILING,
    "Event.synchronize()": lambda event: event.synchronize(),
    "Event.query()": lambda event: event.query(),
}


class TestWhatSpoilsCaptures:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("call", UNSAFE)
    def test_is_refused_by_name_and_the_capture_goes_on(
        self, xp: Any, graph: tcuda.CUDAGraph, mode: str, call: str
    ) -> None:
        x, event = xp.zeros(10), tcuda.Event()
        event.record()
        tcuda.synchronize()
        with tcuda.graph(graph, capture_error_mode=mode):
            if mode == "relaxed" and call not in SPOILING:
                UNSAFE[call](event)
            else:
                with pytest.raises(tcuda.AcceleratorError) as caught:
                    UNSAFE[call](event)
                assert caught.value.error_code == 900
                assert caught.value.call == call
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_the_wait_for_an_event_of_before_is_refused_too(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, event = xp.zeros(10), tcuda.Event()
        event.record()
        with tcuda.graph(graph):
            for wait in (event.wait, lambda: tcuda.current_stream().wait_event(event)):
                with pytest.raises(tcuda.AcceleratorError) as caught:
                    wait()
                assert caught.value.error_code == 905
                assert caught.value.call == "Event.wait()"
            event.record()  # from here on it is of the capture
            event.wait()
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_the_wait_for_a_stream_outside_is_refused_too(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, outside = xp.zeros(10), tcuda.Stream()
        with tcuda.graph(graph):
            for other in (outside, tcuda.default_stream()):
                with pytest.raises(tcuda.AcceleratorError) as caught:
                    tcuda.current_stream().wait_stream(other)
                assert caught.value.error_code == 905
                assert caught.value.call == "Stream.wait_stream()"
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_captures_are_not_merged(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y, other = xp.zeros(10), xp.zeros(10), tcuda.CUDAGraph()
        streams = [tcuda.Stream(), tcuda.Stream()]
        for made, stream in zip((graph, other), streams, strict=True):
            with tcuda.stream(stream):
                made.capture_begin(capture_error_mode="relaxed")
        with pytest.raises(tcuda.AcceleratorError) as caught:
            streams[0].wait_stream(streams[1])
        assert caught.value.error_code == 902
        for made, stream, array in zip((graph, other), streams, (x, y), strict=True):
            with tcuda.stream(stream):
                array += 1
                made.capture_end()
        graph.replay()
        other.replay()
        assert (x.get() == 1).all()
        assert (y.get() == 1).all()
        other.reset()

    def test_an_event_that_stands_for_nothing_may_be_asked(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, event = xp.zeros(10), tcuda.Event()
        with tcuda.graph(graph):
            assert event.query()
            event.synchronize()
            event.wait()
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_an_event_of_the_capture_is_not_asked(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, event = xp.zeros(10), tcuda.Event()
        with tcuda.graph(graph, capture_error_mode="relaxed"):
            event.record()
            for ask in (event.query, event.synchronize):
                with pytest.raises(tcuda.AcceleratorError) as caught:
                    ask()
                assert caught.value.error_code == 907
            x += 1
        event.record()
        event.synchronize()
        graph.replay()
        assert (x.get() == 1).all()

    def test_ends_the_capture_and_nothing_else(self, xp: Any, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        def work() -> None:
            xp.zeros(10)
            runtime.streamQuery(tcuda.current_stream().cuda_stream)

        with pytest.raises(tcuda.AcceleratorError) as caught:
            captured(work, graph)
        assert caught.value.error_code == 901
        assert nothing_captures()
        with pytest.raises(RuntimeError, match="without a preceding successful capture"):
            graph.replay()
        _, y = captured(lambda: xp.zeros(10), graph)
        graph.replay()
        assert (y.get() == 0).all()


class TestExceptions:
    def test_in_the_block_are_what_the_user_sees(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)

        def work() -> None:
            x.__iadd__(1)
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            captured(work, graph)
        assert nothing_captures()
        with pytest.raises(RuntimeError, match="without a preceding successful capture"):
            graph.replay()
        captured(lambda: x.__iadd__(1), graph)
        graph.replay()
        assert (x.get() == 1).all()

    def test_in_a_capture_that_is_spoiled_are_seen_too(self, xp: Any, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        def work() -> None:
            runtime.streamQuery(tcuda.current_stream().cuda_stream)
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            captured(work, graph)
        assert nothing_captures()

    def test_give_the_memory_back(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        tcuda.empty_cache()
        before = tcuda.memory_reserved()
        with contextlib.suppress(KeyError), tcuda.graph(graph):
            xp.zeros(64 * MIB, xp.uint8)
            raise KeyError
        assert tcuda.memory_reserved() == before

    def test_on_another_stream_than_the_capture_began_on(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with pytest.raises(RuntimeError, match="must end on the same stream"), tcuda.graph(graph):
            tcuda.set_stream(tcuda.Stream())
        assert nothing_captures()

    def test_for_lack_of_memory(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        _, total = tcuda.mem_get_info()
        with pytest.raises(tcuda.OutOfMemoryError), tcuda.graph(graph):
            xp.empty(2 * total, xp.uint8)
        assert nothing_captures()


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

    def test_is_not_used_by_others_while_the_graph_lives(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_goes_back_when_the_graph_is_reset(self, xp: Any) -> None:
        tcuda.empty_cache()
        before = tcuda.memory_reserved()
        graph, y = captured(lambda: xp.zeros(64 * MIB, xp.uint8))
        pool = graph.pool()
        del y
        assert tcuda.memory_reserved() >= before + 64 * MIB
        graph.replay()
        graph.reset()
        assert held_by(pool) == 0
        assert tcuda.memory_reserved() == before

    def test_goes_back_when_the_graph_dies(self, xp: Any) -> None:
        tcuda.empty_cache()
        before = tcuda.memory_reserved()
        graph, y = captured(lambda: xp.zeros(64 * MIB, xp.uint8))
        graph.replay()
        died = weakref.ref(graph)
        del y, graph
        assert died() is None
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
        z = y + 1  # on the default stream, which the pool knows nothing of
        del y
        assert held_by(pool) > 0
        assert (z.get() == 8).all()
        tcuda.empty_cache()
        assert held_by(pool) == 0

    def test_waits_for_the_replay_that_is_running(self, xp: Any) -> None:
        x, y = [xp.zeros(1000)], xp.zeros(1000)

        def slowly() -> None:
            tcuda._sleep(20_000_000)
            temporary = x[0] + 1
            y.__iadd__(temporary)

        tcuda._sleep(10)  # the kernel is loaded before the capture
        graph, _ = captured(slowly)
        with tcuda.stream(tcuda.Stream()):
            graph.replay()
        x.clear()
        graph.reset()
        assert (y.get() == 1).all()

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

    def test_of_other_threads_is_their_own(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        made = []
        with tcuda.graph(graph):
            y = xp.zeros(1000)
            thread = threading.Thread(target=lambda: made.append(xp.empty(32 * MIB, xp.uint8)))
            thread.start()
            thread.join()
        assert pool_of(y) == graph.pool()
        assert pool_of(made[0]) == (0, 0)

    def test_of_streams_of_other_devices_is_the_graphs_too(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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
    def test_of_captures_in_two_threads_is_apart(self, xp: Any, mode: str) -> None:
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
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({graph.pool() for graph, _ in found}) == 2
        assert all(pool_of(y) == graph.pool() for graph, y in found)
        assert sorted(float(y.get()[0]) for _, y in found) == [0.0, 2.0]

    def test_of_a_stream_that_does_not_capture_is_common(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_a_thousand_captures_leave_as_it_was(self, xp: Any) -> None:
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
            graph.reset()
            reserved.add(tcuda.memory_reserved())
        assert len(reserved) == 1

    @pytest.mark.gpu
    def test_ten_thousand_captures_leave_as_it_was(self, xp: Any) -> None:
        graph, stream = tcuda.CUDAGraph(), tcuda.Stream()
        x = xp.zeros(10)

        def capture() -> None:
            with tcuda.stream(stream):
                graph.capture_begin()
                y = x + 1
                graph.capture_end()
            del y
            graph.reset()

        capture()  # which loads kernels, and makes the handle of cuBLAS
        free, _ = tcuda.mem_get_info()
        reserved = tcuda.memory_reserved()
        for _ in range(10_000):
            capture()
        assert tcuda.memory_reserved() == reserved
        assert tcuda.mem_get_info()[0] > free - 64 * MIB


class TestInputs:
    """Memory that a graph reads stays, whatever becomes of the arrays."""

    @staticmethod
    def clutter(xp: Any) -> list[Any]:
        return [xp.full(1000, -1.0) for _ in range(30)]

    def test_are_kept_when_they_die_after_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.full(1000, 3.0)
        _, y = captured(partial(xp.multiply, x, 2), graph)
        del x
        others = self.clutter(xp)
        graph.replay()
        assert (y.get() == 6).all()
        del others

    def test_are_kept_when_they_die_in_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        inputs = [xp.full(1000, 3.0)]
        _, y = captured(lambda: inputs.pop() * 2, graph)
        others = self.clutter(xp)
        graph.replay()
        assert (y.get() == 6).all()
        del others

    def test_are_kept_where_the_graph_reads_the_middle(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.arange(1000.0)
        part = x[500:600]
        _, y = captured(partial(xp.multiply, part, 2), graph)
        del x, part
        others = self.clutter(xp)
        graph.replay()
        assert (y.get() == [2.0 * number for number in range(500, 600)]).all()
        del others

    def test_that_are_only_written_or_copied_are_kept(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        arrays = [xp.full(1000, 3.0), xp.zeros(1000), xp.empty(1000)]

        def work() -> None:
            x, y, z = arrays
            y[...] = x
            z.fill(1)

        captured(work, graph)
        addresses = {array.data.ptr for array in arrays}
        arrays.clear()
        others = self.clutter(xp)
        assert not addresses & {other.data.ptr for other in others}

    def test_of_another_graphs_pool_are_kept(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        handle = tcuda.graph_pool_handle()
        first, y = captured(lambda: xp.full(1000, 3.0), pool=handle)
        _, z = captured(partial(xp.multiply, y, 2), graph, pool=handle)
        address = y.data.ptr
        del y
        third, w = captured(lambda: xp.zeros(1000), pool=handle)
        assert w.data.ptr != address
        first.replay()
        third.replay()
        graph.replay()
        assert (z.get() == 6).all()
        first.reset()
        third.reset()

    def test_are_free_after_the_reset(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        before = tcuda.memory_stats()["active_bytes.all.current"]
        x = xp.full(MIB, 3.0)
        _, y = captured(partial(xp.multiply, x, 2), graph)
        del x, y
        stats = tcuda.memory_stats()
        assert stats["allocated_bytes.all.current"] <= before
        assert stats["active_bytes.all.current"] >= before + 8 * MIB
        graph.replay()
        graph.reset()
        assert tcuda.memory_stats()["active_bytes.all.current"] == before

    def test_that_the_graph_does_not_use_are_free_after_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        before = tcuda.memory_stats()["active_bytes.all.current"]
        unused = [xp.full(MIB, 3.0)]
        with tcuda.graph(graph):
            unused.clear()
            y = xp.zeros(10)
        assert tcuda.memory_stats()["active_bytes.all.current"] <= before + KIB
        del y

    def test_survive_a_reset_in_the_middle_of_another_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.full(1000, 3.0)
        first, y = captured(partial(xp.multiply, x, 2))
        before = tcuda.memory_stats()["active_bytes.all.current"]
        del x
        with tcuda.graph(graph):
            z = xp.zeros(10)
            first.reset()
            del y
        graph.replay()
        assert (z.get() == 0).all()
        assert tcuda.memory_stats()["active_bytes.all.current"] < before

    def test_survive_garbage_collection_of_a_graph_in_a_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(1000)
        holder: list[Any] = list(captured(lambda: x + 1))
        holder.append(holder)
        del holder
        with tcuda.graph(graph):
            x += 1
            gc.collect()
            x += 1
        graph.replay()
        assert (x.get() == 2).all()


class TestRandomNumbers:
    @pytest.fixture(autouse=True)
    def seeded(self, runtime: Runtime) -> Iterator[None]:
        with tcuda.random.fork_rng():
            tcuda.manual_seed(5)
            yield

    @staticmethod
    def draw(xp: Any) -> list[Any]:
        random = xp.random
        return [
            random.random_sample(1000).astype("f"),
            random.standard_normal(10),
            random.randint(0, 10, 100),
            random.uniform(2, 3, 7, "f"),
        ]

    @staticmethod
    def values(arrays: list[Any]) -> list[bytes]:
        return [array.get().tobytes() for array in arrays]

    def test_are_those_that_the_functions_would_give(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        generator = tcuda.default_generators[0]
        _, arrays = captured(lambda: self.draw(xp), graph)
        assert generator.get_offset() == 0
        replayed, offsets = [], []
        for _ in range(3):
            graph.replay()
            replayed.append(self.values(arrays))
            offsets.append(generator.get_offset())
        tcuda.manual_seed(5)
        for values, offset in zip(replayed, offsets, strict=True):
            assert self.values(self.draw(xp)) == values
            assert generator.get_offset() == offset
        assert len({values[0] for values in replayed}) == 3

    def test_follow_the_state_at_the_replay(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        _, arrays = captured(lambda: self.draw(xp), graph)
        tcuda.manual_seed(99)
        self.draw(xp)
        state = tcuda.get_rng_state()
        graph.replay()
        first = self.values(arrays)
        tcuda.set_rng_state(state)
        graph.replay()
        assert self.values(arrays) == first
        tcuda.set_rng_state(state)
        assert self.values(self.draw(xp)) == first

    def test_mix_with_those_outside(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        _, arrays = captured(lambda: self.draw(xp), graph)
        graph.replay()
        mixed = [self.values(arrays), self.values(self.draw(xp))]
        graph.replay()
        mixed.append(self.values(arrays))
        tcuda.manual_seed(5)
        assert [self.values(self.draw(xp)) for _ in range(3)] == mixed

    def test_of_replays_in_a_row_are_their_own(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        kept = xp.zeros((20, 100))
        row = xp.zeros((), xp.int64)

        def step() -> None:
            kept[...] = xp.where(xp.arange(20)[:, None] == row, xp.random.random_sample(100)[None], kept)
            row.__iadd__(1)

        captured(step, graph)
        streams = [tcuda.Stream(), tcuda.Stream()]
        tcuda.synchronize()
        for turn in range(20):  # nobody waits in between
            with tcuda.stream(streams[turn % 2]):
                graph.replay()
        tcuda.synchronize()
        tcuda.manual_seed(5)
        assert (kept.get() == [xp.random.random_sample(100).get() for _ in range(20)]).all()

    def test_on_side_streams(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        side = tcuda.Stream()
        with tcuda.graph(graph):
            here = tcuda.current_stream()
            side.wait_stream(here)
            with tcuda.stream(side):
                first = xp.random.random_sample(50)
            second = xp.random.random_sample(50)
            here.wait_stream(side)
        graph.replay()
        tcuda.synchronize()
        tcuda.manual_seed(5)
        assert (first.get() == xp.random.random_sample(50).get()).all()
        assert (second.get() == xp.random.random_sample(50).get()).all()

    def test_of_a_generator_of_ones_own(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        generator: Any = tcuda.Generator()
        graph.register_generator_state(generator)
        _, y = captured(lambda: generator.random(100), graph)
        graph.replay()
        first = y.get().tobytes()
        graph.replay()
        assert tcuda.default_generators[0].get_offset() == 0
        again: Any = tcuda.Generator()
        assert [again.random(100).get().tobytes() for _ in range(2)] == [first, y.get().tobytes()]
        assert again.get_offset() == generator.get_offset()

    def test_of_two_graphs(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        handle = tcuda.graph_pool_handle()
        other, x = captured(lambda: xp.random.random_sample(100), pool=handle)
        _, y = captured(lambda: xp.random.random_sample(100), graph, pool=handle)
        other.replay()
        graph.replay()
        tcuda.manual_seed(5)
        assert (x.get() == xp.random.random_sample(100).get()).all()
        assert (y.get() == xp.random.random_sample(100).get()).all()
        other.reset()

    def test_with_a_kept_graph(self, xp: Any) -> None:
        graph, y = captured(lambda: xp.random.random_sample(100), tcuda.CUDAGraph(keep_graph=True))
        graph.replay()
        graph.instantiate()
        graph.replay()
        tcuda.manual_seed(5)
        xp.random.random_sample(100)
        assert (y.get() == xp.random.random_sample(100).get()).all()

    @pytest.mark.parametrize(
        "draw",
        [
            lambda random: random.random_sample(100, "f"),
            lambda random: random.standard_normal(100),
            lambda random: random.normal(2.0, 3.0, 100, "f"),
            lambda random: random.lognormal(1.0, 2.0, 100),
            lambda random: random.uniform(2.0, 3.0, 100),
            lambda random: random.randint(-5, 5, 100),
            lambda random: random.standard_exponential(100),
            lambda random: random.standard_cauchy(100),
            lambda random: random.gumbel(1.0, 2.0, 100),
            lambda random: random.laplace(1.0, 2.0, 100),
            lambda random: random.permutation(100),
            lambda random: random.choice(10, 100),
        ],
    )
    def test_of_laws_that_can_be_captured(self, xp: Any, graph: tcuda.CUDAGraph, draw: Callable[[Any], Any]) -> None:
        draw(xp.random)
        tcuda.manual_seed(5)
        _, y = captured(lambda: draw(xp.random), graph)
        drawn = []
        for _ in range(2):
            graph.replay()
            drawn.append(y.get().tobytes())
        tcuda.manual_seed(5)
        assert [draw(xp.random).get().tobytes() for _ in range(2)] == drawn
        assert drawn[0] != drawn[1]

    @pytest.mark.parametrize(
        ("words", "draw"),
        [
            ("takes a seed", lambda random: random.standard_gamma(2.0, 10)),
            ("takes a seed", lambda random: random.beta(2.0, 3.0, 10)),
            ("takes a seed", lambda random: random.poisson(2.0, 10)),
            ("takes a seed", lambda random: random.binomial(5, 0.5, 10)),
            ("D2H transfers are disallowed", lambda random: random.exponential(2.0, 10)),
            ("D2H transfers are disallowed", lambda random: random.rayleigh(2.0, 10)),
            ("D2H transfers are disallowed", lambda random: random.weibull(2.0, 10)),
        ],
    )
    def test_of_laws_that_cannot_are_refused(
        self, xp: Any, graph: tcuda.CUDAGraph, words: str, draw: Callable[[Any], Any]
    ) -> None:
        with tcuda.graph(graph):
            with pytest.raises(RuntimeError, match=words):
                draw(xp.random)
            y = xp.random.random_sample(10)
        graph.replay()
        tcuda.manual_seed(5)
        assert (y.get() == xp.random.random_sample(10).get()).all()

    def test_keep_their_seed_during_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        generator = tcuda.default_generators[0]
        with tcuda.graph(graph):
            tcuda.manual_seed(5)
            with pytest.raises(RuntimeError, match="only if new seed is the same as the original seed"):
                generator.manual_seed(6)
            for call in (generator.seed, generator.get_offset, lambda: generator.set_offset(8)):
                with pytest.raises(RuntimeError, match="during CUDA graph capture"):
                    call()
            assert generator.initial_seed() == 5
            assert tcuda.get_rng_state()[0] == 5
            xp.random.random_sample(10)
        assert generator.get_offset() == 0


class TestRawGraphs:
    def test_are_kept_for_those_who_ask(self, xp: Any) -> None:
        x, graph = xp.zeros(10), tcuda.CUDAGraph(keep_graph=True)
        with pytest.raises(RuntimeError, match=r"until capture_end\(\) has been called"):
            graph.raw_cuda_graph()
        with pytest.raises(RuntimeError, match=r"until instantiate\(\) has been called"):
            graph.raw_cuda_graph_exec()
        with pytest.raises(RuntimeError, match=r"capture_end\(\) must have been called"):
            graph.instantiate()
        captured(lambda: x.__iadd__(1), graph)
        assert graph.raw_cuda_graph() > 0
        with pytest.raises(RuntimeError, match=r"until instantiate\(\) has been called"):
            graph.raw_cuda_graph_exec()
        graph.replay()
        assert graph.raw_cuda_graph_exec() > 0
        graph.instantiate()
        graph.replay()
        assert (x.get() == 2).all()

    def test_can_be_launched_by_others(self, xp: Any, runtime: Runtime) -> None:
        x = xp.zeros(10)
        graph, _ = captured(lambda: x.__iadd__(1), tcuda.CUDAGraph(keep_graph=True))
        made = runtime.graphInstantiate(graph.raw_cuda_graph(), 0)
        runtime.graphLaunch(made, 0)
        tcuda.synchronize()
        runtime.graphExecDestroy(made)
        assert (x.get() == 1).all()

    def test_are_not_kept_for_others(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        captured(lambda: xp.zeros(10), graph)
        with pytest.raises(RuntimeError, match="unless CUDAGraph was initialized with keep_graph=true"):
            graph.raw_cuda_graph()
        with pytest.raises(RuntimeError, match="only when keep_graph=true"):
            graph.instantiate()
        assert graph.raw_cuda_graph_exec() > 0

    def test_are_written_in_the_dot_language(self, xp: Any, graph: tcuda.CUDAGraph, tmp_path: Path) -> None:
        x = xp.zeros(10)
        graph.enable_debug_mode()
        captured(lambda: x.__iadd__(1).__imul__(2), graph)
        graph.debug_dump(str(tmp_path / "graph.dot"))
        text = (tmp_path / "graph.dot").read_text()
        assert text.startswith("digraph dot {")
        assert text.count("add") >= 1
        assert text.count("multiply") >= 1
        assert text.count("->") == 1
        graph.replay()
        assert (x.get() == 2).all()

    def test_are_not_written_without_the_debug_mode(self, xp: Any, graph: tcuda.CUDAGraph, tmp_path: Path) -> None:
        captured(lambda: xp.zeros(10), graph)
        with pytest.warns(UserWarning, match="debug not enabled"):
            graph.debug_dump(tmp_path / "graph.dot")
        graph.enable_debug_mode()
        with pytest.raises(RuntimeError, match="before the capture"):
            graph.debug_dump(tmp_path / "graph.dot")
        assert not (tmp_path / "graph.dot").exists()

    def test_where_they_cannot_be_written(self, xp: Any, tmp_path: Path) -> None:
        graph, _ = captured(lambda: xp.zeros(10), tcuda.CUDAGraph(keep_graph=True))
        graph.enable_debug_mode()
        with pytest.raises(tcuda.AcceleratorError) as caught:
            graph.debug_dump(tmp_path / "missing" / "graph.dot")
        assert caught.value.error_code == 304


class TestTheEnd:
    @pytest.mark.parametrize("order", ["graph, y, x", "x, y, graph", "y, graph, x"])
    def test_they_die_in_any_order(self, output_of: OutputOf, order: str) -> None:
        code = f"""
            import tcuda
            x = tcuda.xp.zeros(10)
            graph = tcuda.CUDAGraph()
            with tcuda.graph(graph):
                y = x + 1
            graph.replay()
            del {order}
            tcuda.empty_cache()
            print(tcuda.memory_allocated(), tcuda.memory_reserved())
        """
        assert output_of(_dedented(code)) == "0 0"

    @pytest.mark.parametrize("keep", ["graph", "y", "graph, y", "tcuda"])
    def test_at_the_exit_of_the_interpreter(self, output_of: OutputOf, keep: str) -> None:
        code = f"""
            import sys
            import tcuda
            x = tcuda.xp.zeros(10)
            graph = tcuda.CUDAGraph()
            with tcuda.graph(graph):
                y = tcuda.xp.random.random_sample(10) + x
            graph.replay()
            sys.kept = [{keep}]
            sys.kept.append(sys.kept)
            print("fine")
        """
        assert output_of(_dedented(code)) == "fine"

    def test_in_the_middle_of_a_capture(self, output_of: OutputOf) -> None:
        code = """
            import tcuda
            graph = tcuda.CUDAGraph()
            stream = tcuda.Stream()
            tcuda.set_stream(stream)
            graph.capture_begin()
            y = tcuda.xp.zeros(10)
            print("fine")
        """
        assert output_of(_dedented(code)) == "fine"


def _dedented(code: str) -> str:
    return "\n".join(line[12:] for line in code.splitlines())


def test_nothing_is_initialised_for_a_question(output_of: OutputOf) -> None:
    code = "import tcuda; print(tcuda.is_current_stream_capturing(), tcuda.is_initialized())"
    assert output_of(code) == "False False"


def test_a_capture_of_cupys_or_ones_own_has_no_pool(xp: Any, runtime: Runtime) -> None:
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        assert tcuda.is_current_stream_capturing()
        y = xp.empty(1000)
        runtime.graphDestroy(runtime.streamEndCapture(stream.cuda_stream))
    assert pool_of(y) == (0, 0)
