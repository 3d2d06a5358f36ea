"""The lines of the program that capture the nodes of a graph."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from tcuda._base.user_code import Place
from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import GraphNode
from tcuda.graphs import _picture
from tcuda.sanitizer import _detector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType


@pytest.fixture
def lines_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_GRAPH_LINES", "1")


@pytest.fixture
def kept(graph: tcuda.CUDAGraph) -> Iterator[tcuda.CUDAGraph]:
    made = tcuda.CUDAGraph(keep_graph=True)
    yield made
    made.reset()


def lines_of(graph: tcuda.CUDAGraph) -> list[tuple[str, int] | None]:
    """Return the function and the line in the function for each node."""
    assert graph._work is not None
    return [
        None
        if node.line is None
        else (node.line.name, node.line.line - globals()[node.line.name].__code__.co_firstlineno)
        for node in cuda.graphNodes(graph._work.graph)
    ]


def two_lines(graph: tcuda.CUDAGraph, x: Any) -> None:
    with tcuda.graph(graph):
        x += 1
        add_and_double(x)


def add_and_double(x: Any) -> None:
    x += 1
    x *= 2


def on_two_streams(graph: tcuda.CUDAGraph, x: Any, y: Any) -> None:
    other = tcuda.Stream()
    with tcuda.graph(graph):
        other.wait_stream(tcuda.current_stream())
        with tcuda.stream(other):
            y += 1
        x += 1
        tcuda.current_stream().wait_stream(other)
        x += y


def on_two_devices(graph: tcuda.CUDAGraph, x: Any, y: Any) -> None:
    other = tcuda.Stream(device=1)
    with tcuda.graph(graph):
        origin = tcuda.current_stream()
        x += 1
        other.wait_stream(origin)
        with tcuda.stream(other):
            y += 1
            y += 1
        origin.wait_stream(other)
        x += 1


def with_a_body(graph: tcuda.CUDAGraph, x: Any, flag: Any) -> None:
    with tcuda.graph(graph):
        x += 1
        tcuda.graphs.while_loop(flag, clear, x, flag)
        x += 1


def clear(x: Any, flag: Any) -> None:
    x += 1
    flag.fill(0)


@pytest.mark.usefixtures("lines_on")
def test_each_node_knows_the_line_that_has_captured_it(xp: Any, graph: tcuda.CUDAGraph) -> None:
    x = xp.zeros(3)
    two_lines(graph, x)
    assert lines_of(graph) == [("two_lines", 2), ("add_and_double", 1), ("add_and_double", 2)]
    graph.replay()
    assert x.tolist() == [4, 4, 4]


@pytest.mark.usefixtures("lines_on")
def test_the_nodes_of_all_streams_have_lines(xp: Any, graph: tcuda.CUDAGraph) -> None:
    on_two_streams(graph, xp.zeros(3), xp.zeros(3))
    assert sorted(map(str, lines_of(graph))) == [str(("on_two_streams", line)) for line in (5, 6, 8)]


@pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
@pytest.mark.usefixtures("lines_on")
def test_the_nodes_of_all_devices_have_lines(xp: Any, graph: tcuda.CUDAGraph) -> None:
    with tcuda.device(1):
        y = xp.zeros(3)
        y += 1  # a capture on CUDA loads no kernels
        tcuda.synchronize(1)
    x = xp.zeros(3)
    on_two_devices(graph, x, y)
    assert lines_of(graph) == [("on_two_devices", line) for line in (4, 7, 8, 10)]
    graph.replay_stepwise()
    assert (x.tolist(), y.tolist()) == ([2] * 3, [3] * 3)


@pytest.mark.usefixtures("lines_on")
def test_the_nodes_of_bodies_have_lines(xp: Any, graph: tcuda.CUDAGraph) -> None:
    x, flag = xp.zeros(3), xp.ones((), bool)
    clear(x, flag)  # a capture on CUDA loads no kernels
    with_a_body(graph, x, flag)
    assert graph._work is not None
    assert lines_of(graph) == [("with_a_body", line) for line in (2, 3, 3, 4)]
    (body,) = graph._work._bodies
    assert [
        node.line and (node.line.name, node.line.line - clear.__code__.co_firstlineno) for node in cuda.graphNodes(body)
    ][:2] == [("clear", 1), ("clear", 2)]


@pytest.mark.wings
def test_no_line_is_recorded_unless_asked_for(xp: Any, kept: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCUDA_GRAPH_LINES", raising=False)
    two_lines(kept, xp.zeros(3))
    assert lines_of(kept) == [None] * 3 or _detector.is_started()


@pytest.mark.wings
def test_a_check_records_the_lines(xp: Any, kept: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCUDA_GRAPH_LINES", raising=False)
    with tcuda.sanitizer.check():
        two_lines(kept, xp.zeros(3))
    assert lines_of(kept) == [("two_lines", 2), ("add_and_double", 1), ("add_and_double", 2)]


def test_the_variable_is_checked(graph: tcuda.CUDAGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_GRAPH_LINES", "yes")
    with pytest.raises(ValueError, match="^TCUDA_GRAPH_LINES is 'yes'; it can be '0' or '1'.$"), tcuda.graph(graph):
        pass


@pytest.mark.usefixtures("lines_on")
def test_a_failed_capture_leaves_no_trace(xp: Any, graph: tcuda.CUDAGraph) -> None:
    before = sys.gettrace()
    with pytest.raises(ZeroDivisionError), tcuda.graph(graph):
        raise ZeroDivisionError
    assert sys.gettrace() is before
    two_lines(graph, xp.zeros(3))
    assert sys.gettrace() is before


@pytest.mark.gpu
@pytest.mark.usefixtures("lines_on")
def test_another_tool_that_traces_gets_a_warning(xp: Any, graph: tcuda.CUDAGraph) -> None:
    def tracing(frame: FrameType, event: str, argument: Any) -> None:
        pass

    sys.settrace(tracing)
    try:
        with pytest.warns(RuntimeWarning, match="TCUDA_GRAPH_LINES=1 has recorded no line of this graph"):
            two_lines(graph, xp.zeros(3))
        assert sys.gettrace() is tracing
    finally:
        sys.settrace(None)


@pytest.mark.usefixtures("lines_on")
@pytest.mark.parametrize("verbose", [True, False])
def test_a_dumped_graph_shows_the_lines(verbose: bool, xp: Any, graph: tcuda.CUDAGraph, tmp_path: Path) -> None:
    two_lines(graph, xp.zeros(3))
    graph.debug_dump(tmp_path / "graph.dot", verbose=verbose)
    text = (tmp_path / "graph.dot").read_text()
    for line in cuda.graphNodes(graph._work.graph):  # type: ignore[union-attr]  # there is work after a capture
        assert text.count(str(line.line)) == 1


@pytest.mark.usefixtures("lines_on")
def test_an_update_takes_the_lines_over(xp: Any, graph: tcuda.CUDAGraph, kept: tcuda.CUDAGraph) -> None:
    two_lines(graph, xp.zeros(3))
    two_lines(kept, xp.zeros(3))
    graph.update(kept)
    assert lines_of(graph) == [("two_lines", 2), ("add_and_double", 1), ("add_and_double", 2)]


# What CUDA writes: nodes of bodies and child graphs follow in clusters of their own.
DRAWN = rb"""digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"graph_1_node_0"[style="bold" shape="record" label="{KERNEL
| {ID | 0 (topoId: 1) | add\<\<\<1,512,0\>\>\>}
| {priority | 0}
}"];
"graph_1_node_1"[style="solid" shape="rectangle" label="1
MEMCPY
(DtoD,24)
"];
"graph_1_node_0" -> "graph_1_node_1";
}
subgraph cluster_2 {
"graph_2_node_0"[style="bold" shape="octagon" label="0
add\<\<\<1,512,0\>\>\>
"];
}
}
"""


class TestTheDrawingOfCuda:
    """The drawing gets the lines of the first graph only."""

    def test_records_and_other_labels_get_their_lines(self) -> None:
        lines = [Place(f'a{{"{name}.py', 7, "<module>") for name in "xy"]
        nodes = [
            cuda_node("kernel", "add", lines[0]),
            cuda_node("memcpy", None, lines[1]),
        ]
        assert _picture._with_lines(DRAWN, nodes) == DRAWN.replace(
            b'0}\n}"]', b'0}\n| {line | a\\{\\"x.py:7 in \\<module\\>}\n}"]'
        ).replace(b'(DtoD,24)\n"]', b'(DtoD,24)\na{\\"y.py:7 in <module>\\n"]')

    @pytest.mark.parametrize("kernels", [["add"], ["add", None, None], ["multiply", None]])
    def test_a_drawing_of_other_nodes_stays_as_it_is(self, kernels: list[str | None]) -> None:
        line = Place("a.py", 7, "f")
        assert _picture._with_lines(DRAWN, [cuda_node("kernel", kernel, line) for kernel in kernels]) == DRAWN


def cuda_node(kind: str, kernel: str | None, line: Place) -> GraphNode:
    return GraphNode(kind, 0, kernel, 0, [], line)
