"""Mistakes with graphs: the errors, the calls that invalidate a capture, and the state afterwards."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import MODES, captured, nothing_captures
from support.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")


class TestErrors:
    def test_calls_that_come_too_early_raise_torchs_errors(self, runtime: Runtime) -> None:
        graph = tcuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="^Called CUDAGraph::replay without a preceding successful capture.$"):
            graph.replay()
        with pytest.raises(RuntimeError, match=r"^Called CUDAGraph::pool\(\) without a preceding successful capture.$"):
            graph.pool()
        with pytest.raises(tcuda.AcceleratorError) as caught:
            graph.capture_end()
        assert caught.value.error_code == 401
        assert "each capture_begin() has one capture_end()" in str(caught.value)
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

    def test_an_unknown_mode_is_refused(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with (
            pytest.raises(RuntimeError, match="Expected `global`, `thread_local`, or `relaxed`, got lax"),
            tcuda.graph(graph, capture_error_mode="lax"),
        ):
            raise AssertionError("entered")
        assert nothing_captures()

    @pytest.mark.parametrize("mode", [5, None, [], b"global"])
    def test_a_mode_that_is_no_text_is_refused(self, runtime: Runtime, graph: tcuda.CUDAGraph, mode: Any) -> None:
        with (
            pytest.raises(TypeError, match="capture_error_mode must be a str"),
            tcuda.graph(graph, capture_error_mode=mode),
        ):
            raise AssertionError("entered")
        assert nothing_captures()

    @pytest.mark.parametrize("bad", [5, None, "graph", [], object()])
    def test_another_object_than_a_graph_is_refused(self, runtime: Runtime, bad: Any) -> None:
        with pytest.raises(TypeError, match=r"tcuda\.graph\(\) takes a tcuda\.CUDAGraph; got"):
            tcuda.graph(bad)
        assert nothing_captures()

    @pytest.mark.parametrize("pool", [5, (0, 0), (0,), (1, "a"), (-1, 2), (1, 2**64), [0, 1]])
    def test_another_object_than_a_pool_is_refused(self, runtime: Runtime, graph: tcuda.CUDAGraph, pool: Any) -> None:
        with pytest.raises(TypeError, match="pool (must be|is)"), tcuda.graph(graph, pool=pool):
            raise AssertionError("entered")
        assert nothing_captures()

    def test_a_stream_that_already_captures_is_refused(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        other = tcuda.CUDAGraph()
        pools = {segment["segment_pool_id"] for segment in tcuda.memory_snapshot()}
        with tcuda.stream(tcuda.Stream()):
            graph.capture_begin(capture_error_mode="relaxed")
            with pytest.raises(tcuda.AcceleratorError) as caught:
                other.capture_begin()
            assert caught.value.error_code == 401
            assert "Captures cannot be nested" in str(caught.value)
            xp.zeros(10)
            graph.capture_end()
        graph.replay()
        graph.reset()
        tcuda.empty_cache()
        assert {segment["segment_pool_id"] for segment in tcuda.memory_snapshot()} == pools

    def test_a_capture_in_a_capture_is_refused_by_the_name_of_the_call(
        self, runtime: Runtime, graph: tcuda.CUDAGraph
    ) -> None:
        with pytest.raises(tcuda.AcceleratorError) as caught, tcuda.graph(graph), tcuda.graph(tcuda.CUDAGraph()):
            raise AssertionError("entered")
        assert caught.value.error_code == 900
        assert caught.value.call == "tcuda.graph()"
        assert "captures cannot be nested" in caught.value.details
        assert nothing_captures()

    def test_a_capture_ends_on_its_stream(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        with tcuda.stream(tcuda.Stream()):
            graph.capture_begin()
            with (
                pytest.raises(RuntimeError, match="must end on the same stream it began on"),
                tcuda.stream(tcuda.Stream()),
            ):
                graph.capture_end()
            xp.zeros(10)
            graph.capture_end()
        graph.replay()

    def test_annotations_are_not_implemented(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with pytest.raises(NotImplementedError, match="enable_annotations"):
            tcuda.graph(graph, enable_annotations=True)
        tcuda.graph(graph, annotation_config={"backend": "auto"})  # has an effect with annotations only

    def test_another_object_than_a_generator_is_refused(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
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

    def test_a_replay_on_another_stream_is_allowed_during_a_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        inner, _ = captured(lambda: x.__iadd__(1))
        stream = tcuda.Stream()
        with tcuda.graph(graph):
            with tcuda.stream(stream):
                inner.replay()
            y = xp.zeros(10)
        graph.replay()
        tcuda.synchronize()
        assert (x.get() == 1).all()
        assert (y.get() == 0).all()


INVALIDATING: dict[str, Callable[[Any], object]] = {
    "tcuda.synchronize()": lambda event: tcuda.synchronize(),
    "Stream.synchronize()": lambda event: tcuda.current_stream().synchronize(),
    "Stream.query()": lambda event: tcuda.current_stream().query(),
}
UNSAFE: dict[str, Callable[[Any], object]] = {
    **INVALIDATING,
    "Event.synchronize()": lambda event: event.synchronize(),
    "Event.query()": lambda event: event.query(),
}


class TestCallsThatInvalidateCaptures:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("call", UNSAFE)
    def test_is_refused_by_name_and_the_capture_goes_on(
        self, xp: Any, graph: tcuda.CUDAGraph, mode: str, call: str
    ) -> None:
        x, event = xp.zeros(10), tcuda.Event()
        event.record()
        tcuda.synchronize()
        with tcuda.graph(graph, capture_error_mode=mode):
            if mode == "relaxed" and call not in INVALIDATING:
                UNSAFE[call](event)
            else:
                with pytest.raises(tcuda.AcceleratorError) as caught:
                    UNSAFE[call](event)
                assert caught.value.error_code == 900
                assert caught.value.call == call
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_the_wait_for_an_event_recorded_before_the_capture_is_refused(
        self, xp: Any, graph: tcuda.CUDAGraph
    ) -> None:
        x, event = xp.zeros(10), tcuda.Event()
        event.record()
        with tcuda.graph(graph):
            for wait in (event.wait, lambda: tcuda.current_stream().wait_event(event)):
                with pytest.raises(tcuda.AcceleratorError) as caught:
                    wait()
                assert caught.value.error_code == 905
                assert caught.value.call == "Event.wait()"
            event.record()  # from here on the event belongs to the capture
            event.wait()
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_the_wait_for_a_stream_outside_of_the_capture_is_refused(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_the_wait_for_a_stream_of_another_capture_is_refused(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_an_event_that_was_never_recorded_may_be_used(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, event = xp.zeros(10), tcuda.Event()
        with tcuda.graph(graph):
            assert event.query()
            event.synchronize()
            event.wait()
            x += 1
        graph.replay()
        assert (x.get() == 1).all()

    def test_query_and_synchronize_of_an_event_of_the_capture_are_refused(
        self, xp: Any, graph: tcuda.CUDAGraph
    ) -> None:
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

    def test_an_unsafe_runtime_call_ends_only_the_capture(
        self, xp: Any, runtime: Runtime, graph: tcuda.CUDAGraph
    ) -> None:
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
    def test_in_the_scope_are_raised_and_end_the_capture(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_in_a_capture_that_is_invalidated_are_seen_too(
        self, xp: Any, runtime: Runtime, graph: tcuda.CUDAGraph
    ) -> None:
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


NEAR_THE_LIMIT = """
import sys, warnings
import tcuda

warnings.simplefilter("ignore", UserWarning)  # the graphs are empty, which is a warning

def capture():
    made.append(tcuda.CUDAGraph())
    with tcuda.graph(made[-1]):
        pass

def dive(calls, work):
    if calls:
        dive(calls - 1, work)
    else:
        work()

made = []
capture()
raised = 0
for calls in range(sys.getrecursionlimit() - 120, sys.getrecursionlimit()):
    try:
        dive(calls, capture)
    except RecursionError:
        raised += 1
    assert tcuda.current_stream() == tcuda.default_stream(), calls
    assert not tcuda._process.captures.captures, calls
    made[-1].reset()
    capture()
print(raised > 10)
"""


def test_a_capture_near_the_limit_of_nested_calls_leaves_nothing(output_of: OutputOf) -> None:
    assert output_of(NEAR_THE_LIMIT) == "True"
