"""The lines of captured nodes on CUDA, with notes that stand for those of the driver."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tcuda._runtime.cuda.captured_lines import CapturedLines

if TYPE_CHECKING:
    from collections.abc import Iterator

ORIGIN, BODY_STREAM = 1, 2
GRAPH, BODY = 11, 12


class Graphs:
    """Two graphs that are captured, and the notes of their nodes."""

    def __init__(self) -> None:
        self.nodes: dict[int, list[int]] = {GRAPH: [], BODY: []}
        self.capturing: dict[int, int] = {}

    def note(self, stream: int, note: int) -> int:
        nodes = self.nodes.get(self.capturing.get(stream, 0), [])
        fresh = nodes.count(0)
        nodes[:] = [known or note for known in nodes]
        return fresh

    def notes_of(self, graph: int) -> tuple[int, list[int]]:
        return 0, self.nodes[graph]


@pytest.fixture
def graphs() -> Iterator[Graphs]:
    before = sys.gettrace()
    sys.settrace(None)
    yield Graphs()
    assert sys.gettrace() is None
    sys.settrace(before)


@pytest.fixture
def lines(graphs: Graphs) -> CapturedLines:
    def notes() -> Any:
        return graphs

    return CapturedLines(notes)


def capture(lines: CapturedLines, graphs: Graphs) -> None:
    own, inner = graphs.nodes[GRAPH], graphs.nodes[BODY]
    graphs.capturing[ORIGIN] = GRAPH
    lines.begin(ORIGIN)
    own.append(0)
    graphs.capturing[BODY_STREAM] = BODY
    lines.begin_body(BODY_STREAM)
    inner.append(0)
    (inner.append(0), lines.look(), graphs.capturing.pop(BODY_STREAM))
    own += [0, 0]
    noted = lines.end(ORIGIN)
    assert noted is not None
    lines.keep(GRAPH, [BODY], noted)


def lines_of(lines: CapturedLines, graph: int, count: int) -> list[int | None]:
    first = capture.__code__.co_firstlineno
    return [None if line is None else line.line - first for line in lines.of(graph, count)]


def test_graphs_and_bodies_have_the_lines_of_the_capture(graphs: Graphs, lines: CapturedLines) -> None:
    capture(lines, graphs)
    assert lines_of(lines, GRAPH, 3) == [4, 9, 9]
    assert lines_of(lines, BODY, 2) == [7, 8]


def test_a_destroyed_graph_has_no_lines(graphs: Graphs, lines: CapturedLines) -> None:
    capture(lines, graphs)
    lines.forget(GRAPH)
    lines.forget(GRAPH)
    assert (lines.of(GRAPH, 3), lines.of(BODY, 2)) == ([None] * 3, [None] * 2)


def test_a_capture_without_records_has_no_lines(lines: CapturedLines) -> None:
    assert lines.end(ORIGIN) is None
    lines.begin_body(BODY_STREAM)
    lines.look()
    assert lines.of(GRAPH, 2) == [None, None]


def test_an_abandoned_capture_gives_way_to_the_next_one(graphs: Graphs, lines: CapturedLines) -> None:
    lines.begin(ORIGIN)
    capture(lines, graphs)
    assert lines_of(lines, GRAPH, 3) == [4, 9, 9]


def test_another_tool_that_traces_leaves_the_lines_unknown(graphs: Graphs, lines: CapturedLines) -> None:
    def tracing(*arguments: object) -> None:
        pass

    sys.settrace(tracing)
    capture(lines, graphs)
    assert sys.gettrace() is tracing
    sys.settrace(None)
    assert lines.of(GRAPH, 3) == [None] * 3


def test_a_debugger_that_begins_later_leaves_the_rest_unknown(graphs: Graphs, lines: CapturedLines) -> None:
    graphs.capturing[ORIGIN] = GRAPH
    lines.begin(ORIGIN)
    graphs.nodes[GRAPH].append(0)
    sys.settrace(lambda *_: None)
    sys._getframe().f_trace = None  # a debugger takes the frame, too
    graphs.nodes[GRAPH].append(0)
    noted = lines.end(ORIGIN)
    sys.settrace(None)
    assert noted is not None
    lines.keep(GRAPH, [], noted)
    first, second = lines.of(GRAPH, 2)
    assert first is not None
    assert second is None
