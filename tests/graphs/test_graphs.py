"""CUDA graphs: capture, replay, raw graphs, and their end."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import MODES, captured, nothing_captures
from support.pools import pool_of
from support.sizes import MIB
from tcuda._runtime.protocol import CAPTURE_RELAXED

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("allocator_as_found")


class TestReplay:
    def test_reads_and_writes_the_memory_of_the_capture(self, xp: Any) -> None:
        x = xp.arange(10.0)
        graph, y = captured(lambda: xp.sqrt(x) + 1)
        for first in (0.0, 100.0):
            x[...] = xp.arange(first, first + 10)
            graph.replay()
            assert (y.get() == (xp.sqrt(x) + 1).get()).all()

    def test_runs_the_work_that_the_capture_only_recorded(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        with tcuda.graph(graph):
            x += 1
        assert (x.get() == 0).all()
        for times in (1, 2, 3):
            graph.replay()
            assert (x.get() == times).all()

    def test_runs_on_the_current_stream(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_runs_after_the_replay_before(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x.__iadd__(1), graph)
        for _ in range(50):
            graph.replay()
        assert (x.get() == 50).all()

    @pytest.mark.parametrize("index", range(2))
    def test_runs_on_the_device_of_the_capture(self, xp: Any, index: int) -> None:
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

    def test_on_two_streams_in_turn_keeps_the_order_of_the_replays(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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
    def test_is_shown_by_the_stream_and_by_the_graph_class(
        self, runtime: Runtime, graph: tcuda.CUDAGraph, mode: str
    ) -> None:
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

    def test_with_an_unjoined_stream_fails_and_no_stream_captures_afterwards(
        self, xp: Any, graph: tcuda.CUDAGraph
    ) -> None:
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

    def test_uses_the_given_stream(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_is_on_a_stream_that_no_ring_hands_out(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        streams = {tcuda.Stream() for _ in range(32)}
        with tcuda.graph(graph):
            xp.zeros(10)
            assert tcuda.current_stream() not in streams

    @pytest.mark.parametrize(("value", "collects"), [(None, False), ("", False), ("0", False), ("1", True)])
    def test_begins_with_a_garbage_collection_if_the_variable_asks_for_one(
        self, xp: Any, graph: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch, value: str | None, collects: bool
    ) -> None:
        class Holder:
            def __init__(self) -> None:
                self.itself = self
                self.array = xp.empty(32 * MIB, xp.uint8)

        monkeypatch.delenv("TCUDA_GRAPH_GC", raising=False)
        if value is not None:
            monkeypatch.setenv("TCUDA_GRAPH_GC", value)
        gc.disable()
        try:
            Holder()
            before = tcuda.memory_reserved()
            captured(lambda: xp.zeros(10), graph)
            assert (tcuda.memory_reserved() <= before - 30 * MIB) is collects
        finally:
            gc.enable()
        gc.collect()

    def test_begins_with_an_empty_cache(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        xp.empty(32 * MIB, xp.uint8)
        before = tcuda.memory_reserved()
        captured(lambda: xp.zeros(10), graph)
        assert tcuda.memory_reserved() <= before - 30 * MIB

    def test_another_value_of_the_variable_is_refused(
        self, xp: Any, graph: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TCUDA_GRAPH_GC", "yes")
        with pytest.raises(ValueError, match="^TCUDA_GRAPH_GC is 'yes'; it can be '0' or '1'.$"), tcuda.graph(graph):
            raise AssertionError("entered")
        assert tcuda.current_stream() == tcuda.default_stream()
        assert not tcuda.is_current_stream_capturing()

    def test_without_work_warns(self, runtime: Runtime, graph: tcuda.CUDAGraph) -> None:
        with pytest.warns(UserWarning, match="The CUDA Graph is empty") as warned, tcuda.graph(graph):
            pass
        assert warned[0].filename == __file__
        graph.replay()

    def test_after_a_reset_replaces_the_old_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(10)
        captured(lambda: x.__iadd__(1), graph)
        graph.reset()
        graph.reset()
        captured(lambda: x.__isub__(1), graph)
        graph.replay()
        assert (x.get() == -1).all()


class TestRawGraphs:
    def test_are_available_with_keep_graph(self, xp: Any) -> None:
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

    def test_can_be_instantiated_and_launched_by_the_runtime(self, xp: Any, runtime: Runtime) -> None:
        x = xp.zeros(10)
        graph, _ = captured(lambda: x.__iadd__(1), tcuda.CUDAGraph(keep_graph=True))
        made = runtime.graphInstantiate(graph.raw_cuda_graph(), 0)
        runtime.graphLaunch(made, 0)
        tcuda.synchronize()
        runtime.graphExecDestroy(made)
        assert (x.get() == 1).all()

    def test_are_not_available_without_keep_graph(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
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

    def test_are_written_with_less_detail_on_request(self, xp: Any, tmp_path: Path) -> None:
        graph, _ = captured(lambda: xp.zeros(10), tcuda.CUDAGraph(keep_graph=True))
        graph.debug_dump(tmp_path / "verbose.dot")
        graph.debug_dump(tmp_path / "brief.dot", verbose=False)
        assert (tmp_path / "brief.dot").read_text().startswith("digraph dot {")
        assert (tmp_path / "brief.dot").stat().st_size < (tmp_path / "verbose.dot").stat().st_size

    def test_are_not_written_without_the_debug_mode(self, xp: Any, graph: tcuda.CUDAGraph, tmp_path: Path) -> None:
        captured(lambda: xp.zeros(10), graph)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="before the capture"):
                graph.debug_dump(tmp_path / "graph.dot")
            graph.enable_debug_mode()  # too late
        assert not (tmp_path / "graph.dot").exists()

    def test_that_cannot_be_written_raise_an_error(self, xp: Any, tmp_path: Path) -> None:
        graph, _ = captured(lambda: xp.zeros(10), tcuda.CUDAGraph(keep_graph=True))
        graph.enable_debug_mode()
        with pytest.raises(tcuda.AcceleratorError) as caught:
            graph.debug_dump(tmp_path / "missing" / "graph.dot")
        assert caught.value.error_code == 304


class TestTheEnd:
    @pytest.mark.parametrize("order", ["graph, y, x", "x, y, graph", "y, graph, x"])
    def test_graph_and_arrays_may_be_dropped_in_any_order(self, output_of: OutputOf, order: str) -> None:
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

    @pytest.mark.long
    @pytest.mark.parametrize("keep", ["graph", "y", "graph, y", "tcuda"])
    def test_live_graphs_and_arrays_at_the_exit_of_the_interpreter(self, output_of: OutputOf, keep: str) -> None:
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

    def test_the_interpreter_may_exit_during_a_capture(self, output_of: OutputOf) -> None:
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


def test_is_current_stream_capturing_does_not_initialise(output_of: OutputOf) -> None:
    code = "import tcuda; print(tcuda.is_current_stream_capturing(), tcuda.is_initialized())"
    assert output_of(code) == "False False"


def test_a_capture_of_another_library_uses_the_common_pool(xp: Any, runtime: Runtime) -> None:
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        runtime.streamBeginCapture(stream.cuda_stream, CAPTURE_RELAXED)
        assert tcuda.is_current_stream_capturing()
        y = xp.empty(1000)
        runtime.graphDestroy(runtime.streamEndCapture(stream.cuda_stream))
    assert pool_of(y) == (0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_the_end_of_a_thread_that_has_captured_leaves_other_captures_valid(xp: Any, mode: str) -> None:
    x = xp.zeros(10)
    x += 1
    tcuda.synchronize()
    captures, may_end = threading.Event(), threading.Event()

    def capture_and_end() -> None:
        captured(lambda: x.__iadd__(1), capture_error_mode=mode)
        captures.set()
        may_end.wait()

    thread = threading.Thread(target=capture_and_end)
    thread.start()
    captures.wait()
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph, capture_error_mode=mode):
        x += 1
        may_end.set()
        thread.join()
        x += 1
    graph.replay()
    assert (x.get() == 3).all()
