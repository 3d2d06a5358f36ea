"""Replays that run the nodes of a graph one at a time."""

from __future__ import annotations

import pickle
import re
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import GraphNode
from tcuda.graphs import _stepwise
from tcuda.graphs._stepwise import order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf

NO_NAN = "values that isfinite refuses: "


class Marker:
    """An object of the program."""


@pytest.fixture
def graph(graph: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch) -> Iterator[tcuda.CUDAGraph]:
    monkeypatch.setenv("TCUDA_GRAPH_LINES", "1")
    made = tcuda.CUDAGraph(keep_graph=True)
    yield made
    made._abandon_capture()
    made.reset()


def divides(graph: tcuda.CUDAGraph, x: Any) -> dict[str, Any]:
    """Capture work whose third node makes an infinity if an element of ``x`` is 0."""
    with tcuda.graph(graph):
        doubled = x * 2
        more = doubled + 0
        inverse = 1 / more
        result = inverse + 1
    return {"doubled": doubled, "more": more, "inverse": inverse, "result": result}


class TestResults:
    """A replay by steps does what a replay does."""

    def test_are_those_of_a_replay(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.arange(6.0).reshape(2, 3)
        with tcuda.graph(graph):
            x += 1
            y = (x @ x.T).sum(axis=0)
            x[0] = x[1]
            z = xp.zeros(3)
            z += y[0]
        graph.replay_stepwise()
        stepped = [each.tolist() for each in (x, y, z)]
        x[...] = xp.arange(6.0).reshape(2, 3)
        graph.replay()
        assert [each.tolist() for each in (x, y, z)] == stepped

    def test_several_streams_keep_their_order(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y, other = xp.ones(4), xp.ones(4), tcuda.Stream()
        with tcuda.graph(graph):
            x += 1
            other.wait_stream(tcuda.current_stream())
            with tcuda.stream(other):
                y += x
            x *= 3
            tcuda.current_stream().wait_stream(other)
            x += y
        graph.replay_stepwise()
        assert x.tolist() == [9] * 4

    def test_random_numbers_go_on(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        tcuda.manual_seed(3)
        expected = [xp.random.random(5).tolist() for _ in range(4)]
        tcuda.manual_seed(3)
        with tcuda.graph(graph):
            drawn = xp.random.random(5)
        found = []
        for replay in (graph.replay, graph.replay_stepwise, graph.replay_stepwise, graph.replay):
            replay()
            found.append(drawn.tolist())
        assert found == expected

    def test_copies_and_fills_are_done(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y = xp.arange(4), xp.zeros(4, int)
        stream = tcuda.Stream()
        with tcuda.graph(graph, stream=stream):
            cuda.memcpyAsync(y.data.ptr, x.data.ptr, 24, 4, stream.cuda_stream)
            cuda.memsetAsync(y.data.ptr, 0, 8, stream.cuda_stream)
        graph.replay_stepwise(check=lambda array: array >= 0)
        assert y.tolist() == [0, 1, 2, 0]

    def test_external_events_are_recorded(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, done = xp.zeros(3), tcuda.Event(external=True)
        with tcuda.graph(graph):
            x += 1
            done.record()
            x += 1
        graph.replay_stepwise()
        done.synchronize()
        assert done.query()
        assert x.tolist() == [2, 2, 2]

    def test_a_disabled_node_is_left_out(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(3)
        with tcuda.graph(graph):
            x += 1
            x += 10
        graph.set_node_enabled(0, False)
        graph.replay_stepwise()
        assert x.tolist() == [10, 10, 10]
        graph.replay()
        assert x.tolist() == [20, 20, 20]

    def test_a_graph_that_was_updated_or_replaced_does_its_new_work(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y = xp.zeros(3), xp.zeros(3)
        with tcuda.graph(graph):
            x += 1
        graph.replace(x, y)
        graph.replay_stepwise()
        other = tcuda.CUDAGraph(keep_graph=True)
        with tcuda.graph(other):
            x += 5
        graph.update(other)
        graph.replay_stepwise()
        assert (x.tolist(), y.tolist()) == ([5, 5, 5], [1, 1, 1])

    def test_a_graph_that_keeps_its_nodes_for_the_lines_can_be_stepped(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, other = xp.zeros(3), tcuda.CUDAGraph()
        with tcuda.graph(other):
            x += 1
        other.replay_stepwise()
        assert x.tolist() == [1, 1, 1]


class TestCheck:
    """The first node whose output does not pass is named."""

    def test_a_right_graph_passes(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        kept = divides(graph, xp.ones(3))
        graph.replay_stepwise(check=xp.isfinite)
        assert kept["result"].tolist() == [1.5] * 3

    def test_objects_that_hide_their_class_are_no_arrays(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        class Hidden:
            @property
            def __class__(self) -> Any:
                raise ValueError("the object is not ready")

        kept = [Hidden(), weakref.proxy(Marker())]  # the proxy stands for an object that is gone
        arrays = divides(graph, xp.ones(3))
        graph.replay_stepwise(check=xp.isfinite)
        assert (len(kept), len(arrays)) == (2, 4)

    def test_negative_numbers_are_no_memory(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y = xp.array([1.0, 0.0]), xp.zeros(2)
        with tcuda.graph(graph):
            xp.multiply(x[::-1], -2, out=y)
            xp.divide(-2, y, out=y)
        with pytest.raises(RuntimeError, match=rf"node 1 .*{NO_NAN}1 of 2 elements"):
            graph.replay_stepwise(check=xp.isfinite)

    def test_the_first_node_is_named_with_its_line(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.array([1.0, 0.0, 0.0])
        kept = divides(graph, x)
        line = divides.__code__.co_firstlineno + 5
        words = (
            rf"^CUDAGraph.replay_stepwise\(\): node 2 \(\w+, captured at \S+test_stepwise.py:{line} in divides\) has "
            rf"written {NO_NAN}2 of 3 elements of an array of shape \(3,\) and dtype float64. The nodes before"
        )
        with pytest.raises(RuntimeError, match=words):
            graph.replay_stepwise(check=xp.isfinite)
        graph.replay()  # the results have infinities from before now, and are found again
        with pytest.raises(RuntimeError, match=words):
            graph.replay_stepwise(check=xp.isfinite)
        x.fill(1)
        graph.replay_stepwise(check=xp.isfinite)
        assert kept["inverse"].tolist() == [0.5] * 3

    def test_a_wrong_input_is_no_output(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, y = xp.array([1.0, float("nan")]), xp.ones(2)
        with tcuda.graph(graph):
            y += 1
            kept = xp.isfinite(x)
            y += 1
        graph.replay_stepwise(check=xp.isfinite)
        assert kept.tolist() == [True, False]
        with pytest.raises(RuntimeError, match=r"node 1 .* dtype bool"):
            graph.replay_stepwise(check=lambda array: array.dtype != bool or bool(array.all()))

    def test_only_arrays_that_the_graph_writes_are_checked(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, other, seen = xp.ones(3), xp.ones(5), []
        with tcuda.graph(graph):
            kept = [x + 1]
        graph.replay_stepwise(check=lambda array: seen.append(array.shape) or True)
        # With a GPU, the runtime may not know what a kernel writes, and looks at the array of the program before, too.
        assert set(seen) == {(3,)}
        assert (kept[0].size, other.size) == (3, 5)

    def test_views_are_checked(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros((4, 4))
        column = x[:, 1]
        del x
        with tcuda.graph(graph):
            column -= xp.inf
        with pytest.raises(RuntimeError, match=rf"node 0 .*{NO_NAN}4 of ") as raised:
            graph.replay_stepwise(check=xp.isfinite)
        assert "4 of 16 elements of an array of shape (4, 4)" in str(raised.value)
        assert "4 of 4 elements of an array of shape (4,)" in str(raised.value)

    def test_an_error_of_the_check_passes_through(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        kept = divides(graph, xp.ones(3))

        def broken(array: Any) -> bool:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            graph.replay_stepwise(check=broken)
        assert kept["doubled"].tolist() == [2] * 3

    def test_a_kernel_whose_output_was_right_is_named(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        kernel = xp.RawKernel('extern "C" __global__ void divide(float *y, const float *x) { *y = 1 / *x; }', "divide")
        x, y = xp.ones(1, "f"), xp.ones(1, "f")
        kernel((1,), (1,), (y, x))
        x.fill(0)
        with tcuda.graph(graph):
            kernel((1,), (1,), (y, x))
        with pytest.raises(RuntimeError, match=rf"node 0 \(divide, captured at .*{NO_NAN}an array of shape \(1,\)"):
            graph.replay_stepwise(check=xp.isfinite)


class TestErrors:
    """A failed node is named, and what cannot be run alone is refused before anything runs."""

    @pytest.mark.emulated  # on CUDA, no call of the process works after this error
    def test_a_kernel_that_fails_is_named(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        source = 'extern "C" __global__ void reads(float *x, int place) { x[0] = x[place]; }'
        kernel = xp.RawKernel(source, "reads")
        x = xp.ones(1, "f")
        kernel((1,), (1,), (x, xp.int32(0)))
        with tcuda.graph(graph):
            x += 1
            kernel((1,), (1,), (x, xp.int32(1 << 30)))
        line = self.test_a_kernel_that_fails_is_named.__func__.__code__.co_firstlineno + 8  # type: ignore[attr-defined]
        with pytest.raises(tcuda.AcceleratorError) as raised:
            graph.replay_stepwise()
        last = str(raised.value).splitlines()[-1]
        assert last.startswith("CUDAGraph.replay_stepwise() ran node 1 (reads, captured at ")
        assert last.endswith(f"test_stepwise.py:{line} in test_a_kernel_that_fails_is_named).")
        assert last in str(pickle.loads(pickle.dumps(raised.value)))

    def test_a_conditional_node_is_refused_before_anything_runs(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, flag = xp.zeros(3), xp.ones((), bool)
        with tcuda.graph(graph):
            x += 1
            graph.begin_capture_to_if_node(flag)
            x += 1
            graph.end_capture_to_conditional_node()
        words = r"node 2 \(conditional, captured at .*\) cannot be run alone: the value of the condition belongs to "
        with pytest.raises(RuntimeError, match=words):
            graph.replay_stepwise()
        assert x.tolist() == [0, 0, 0]

    def test_a_graph_without_nodes_or_work_is_refused(
        self, xp: Any, graph: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(RuntimeError, match=r"replay_stepwise\(\): the graph has captured nothing yet"):
            graph.replay_stepwise()
        monkeypatch.delenv("TCUDA_GRAPH_LINES")
        other, x = tcuda.CUDAGraph(), xp.zeros(3)
        with tcuda.graph(other):
            x += 1
            with pytest.raises(RuntimeError, match="the graph is being captured"):
                other.replay_stepwise()
        with pytest.raises(RuntimeError, match="has not kept its nodes. .* Or set TCUDA_GRAPH_LINES=1.$"):
            other.replay_stepwise()

    def test_a_capture_in_progress_goes_on(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x = xp.zeros(3)
        with tcuda.graph(graph):
            x += 1
        other = tcuda.CUDAGraph()
        with tcuda.graph(other):
            x += 1
            with pytest.raises(tcuda.AcceleratorError) as raised:
                graph.replay_stepwise()
        assert raised.value.error_code == 900
        other.replay()
        assert x.tolist() == [1, 1, 1]

    def test_the_check_must_be_a_function(self, graph: tcuda.CUDAGraph) -> None:
        with pytest.raises(TypeError, match=r"replay_stepwise\(\): check must be callable; got"):
            graph.replay_stepwise(check=3)  # type: ignore[arg-type]


@pytest.mark.gpu  # emulated devices refuse the launch of a graph in a capture
@pytest.mark.emulated  # a GPU refuses the launch of a graph in a capture
class TestChildGraphs:
    def test_their_nodes_run_one_at_a_time(self, xp: Any, graph: tcuda.CUDAGraph) -> None:
        x, inner = xp.array([3.0, 1.0, 1.0]), tcuda.CUDAGraph(keep_graph=True)
        with tcuda.graph(inner):
            x -= 1
            y = 1 / x
        inner.instantiate()
        with tcuda.graph(graph):
            x += 0
            cuda.graphLaunch(inner.raw_cuda_graph_exec(), tcuda.current_stream().cuda_stream)
            z = y * 2
        with pytest.raises(RuntimeError, match=rf"node 1\.1 .*{NO_NAN}2 of 3 elements"):
            graph.replay_stepwise(check=xp.isfinite)
        x.fill(3)
        graph.replay_stepwise(check=xp.isfinite)
        assert (x.tolist(), z.tolist()) == ([2] * 3, [1] * 3)


def test_child_graphs_are_descended(graph: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    class Runtime:
        """A graph 1 whose second node is the child graph 2, in which the child graph 3 comes last."""

        @staticmethod
        def graphNodes(graph: int) -> list[GraphNode]:  # the name of the runtime's call
            kinds = {1: ["kernel", "child_graph", "memset"], 2: ["kernel", "child_graph"], 3: ["memcpy"]}[graph]
            return [GraphNode(kind, 0, None, 0, [place - 1] * (place > 0)) for place, kind in enumerate(kinds)]

        @staticmethod
        def graphChild(graph: int, place: int) -> int:
            assert place == 1
            return graph + 1

    monkeypatch.setattr(_stepwise, "cuda", Runtime)
    found = [(place.name, place.graph, place.place) for place in _stepwise._places(1, "", None)]
    assert found == [("0", 1, 0), ("1.0", 2, 0), ("1.1.0", 3, 0), ("2", 1, 2)]


@pytest.mark.gpu
def test_a_fatal_error_names_the_node(fresh_output_of: OutputOf) -> None:
    code = """
import os
import sys

import tcuda
from tcuda import xp

kernel = xp.RawKernel('extern "C" __global__ void writes(float *x, size_t place) { x[place] = 1; }', "writes")
x = xp.ones(1, "f")
kernel((1,), (1,), (x, 0))
graph = tcuda.CUDAGraph()
with tcuda.graph(graph):
    x += 1
    kernel((1,), (1,), (x, 1 << 40))
    x += 1
try:
    graph.replay_stepwise()
except tcuda.AcceleratorError as error:
    print(error.error_code, str(error).splitlines()[-1])
sys.stdout.flush()
os._exit(0)  # CUDA refuses all calls now, also those that free memory
"""
    line = fresh_output_of(code, TCUDA_GRAPH_LINES="1")
    assert re.fullmatch(
        r"7\d\d CUDAGraph.replay_stepwise\(\) ran node 1 \(writes, captured at <string>:14 in <module>\).\n?", line
    )


@pytest.mark.parametrize(
    ("before", "expected"),
    [([], []), ([[], [0], [1]], [0, 1, 2]), ([[2], [], [1], []], [1, 2, 0, 3]), ([[], [], [0, 1, 0]], [0, 1, 2])],
)
def test_the_order_is_that_of_the_capture_as_far_as_possible(before: list[list[int]], expected: list[int]) -> None:
    assert order(before) == expected
