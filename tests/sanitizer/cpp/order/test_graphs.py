"""The races of graphs: between their nodes, between launches, and with other work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.core import for_tests
from support.races import X, Y, read, write
from tcuda import _core

if TYPE_CHECKING:
    from support.races import Watch


def test_nodes_that_depend_on_each_other_do_not_race(watch: Watch) -> None:
    (main,) = watch.streams(1)
    graph = watch.detector.graph([("fill", [write()], [], 0), ("sum", [read()], [0], 0), ("fill", [write()], [1], 0)])
    for _ in range(3):
        watch.detector.launch(graph, 0, main)
    assert watch.races == []


def test_branches_without_an_order_race(watch: Watch) -> None:
    (main,) = watch.streams(1)
    nodes = [("begin", [], [], 0), ("fill", [write()], [0], 0), ("sum", [read()], [0], 0), ("end", [], [1, 2], 0)]
    watch.detector.launch(watch.detector.graph(nodes), 0, main)
    (race,) = watch.races
    assert (race.previous.operation, race.current.operation) == ("fill", "sum")


def test_branches_that_meet_are_ordered_from_there_on(watch: Watch) -> None:
    (main,) = watch.streams(1)
    nodes = [
        ("left", [write(X)], [], 0),
        ("right", [write(Y)], [], 0),
        ("join", [read(X), read(Y)], [0, 1], 0),
        ("left", [write(Y)], [2], 0),
        ("right", [write(X)], [2], 0),
    ]
    watch.detector.launch(watch.detector.graph(nodes), 0, main)
    assert watch.races == []


def test_launches_of_one_executable_graph_are_ordered(watch: Watch) -> None:
    main, side = watch.streams(2)
    graph = watch.detector.graph([("fill", [write()], [], 0)])
    watch.detector.launch(graph, 0, main)
    watch.detector.launch(graph, 0, side)
    watch.detector.work(0, side, "sum", [read()])
    assert watch.races == []


def test_launches_of_two_executable_graphs_are_not(watch: Watch) -> None:
    main, side = watch.streams(2)
    first, second = (watch.detector.graph([("fill", [write()], [], 0)]) for _ in range(2))
    watch.detector.launch(first, 0, main)
    watch.detector.launch(second, 0, side)
    assert watch.kinds() == ["write after write"]


def test_the_launching_stream_comes_after_all_branches(watch: Watch) -> None:
    main, side = watch.streams(2)
    graph = watch.detector.graph([("fill", [write(X)], [], 0), ("fill", [write(Y)], [], 0)])
    watch.detector.work(0, main, "sum", [read(X), read(Y)])
    watch.detector.launch(graph, 0, main)
    watch.detector.work(0, main, "sum", [read(X), read(Y)])
    assert watch.races == []
    watch.detector.event_recorded(7, 0, main)
    watch.detector.event_waited(7, 0, side)
    watch.detector.work(0, side, "sum", [read(X), read(Y)])
    assert watch.races == []


def test_results_that_the_next_replay_overwrites_race_with_their_reader(watch: Watch) -> None:
    main, side = watch.streams(2)
    graph = watch.detector.graph([("fill", [write()], [], 0)])
    watch.detector.launch(graph, 0, main)
    watch.detector.event_recorded(7, 0, main)
    watch.detector.event_waited(7, 0, side)
    watch.detector.work(0, side, "sum", [read()])
    watch.detector.launch(graph, 0, main)
    (race,) = watch.races
    assert race.kind == "write after read"
    assert (race.previous.operation, race.current.operation) == ("sum", "fill")


def test_inputs_that_are_written_during_a_replay_race(watch: Watch) -> None:
    main, side = watch.streams(2)
    graph = watch.detector.graph([("sum", [read()], [], 0)])
    watch.detector.launch(graph, 0, main)
    watch.detector.work(0, side, "fill", [write()])
    assert watch.kinds() == ["write after read"]


def test_a_node_has_the_stack_of_its_capture_and_of_its_launch(watch: Watch) -> None:
    def capture() -> _core.RaceGraph:
        return watch.detector.graph([("fill", [write()], [], watch.detector.note_stack())])

    def replay() -> None:
        watch.detector.launch(graph, 0, main)

    main, side = watch.streams(2)
    graph = capture()
    watch.detector.work(0, side, "sum", [read()])
    replay()
    (race,) = watch.races
    assert race.current.stack[0]["name"] == "capture"
    assert race.current.launch_stack is not None
    assert race.current.launch_stack[0]["name"] == "replay"
    assert (race.current.device, race.current.stream) == (0, main)
    assert race.previous.launch_stack is None


def test_a_graph_that_is_gone_gives_its_slots_back(watch: Watch) -> None:
    (main,) = watch.streams(1)
    for _ in range(20):
        graph = watch.detector.graph([("fill", [write(X)], [], 0), ("fill", [write(Y)], [], 0)])
        watch.detector.launch(graph, 0, main)
        del graph
        watch.detector.stream_synchronized(0, main)
    assert for_tests.sizes_of_detector(watch.detector)["slots"] == 3


class TestMistakes:
    def test_a_dependency_is_an_earlier_node(self, watch: Watch) -> None:
        with pytest.raises(IndexError, match="only on earlier nodes"):
            watch.detector.graph([("fill", [], [0], 0)])

    def test_a_graph_belongs_to_its_detector(self, watch: Watch) -> None:
        graph = _core.RaceDetector(print).graph([])
        with pytest.raises(ValueError, match="belongs to another detector"):
            watch.detector.launch(graph, 0, 0)

    @pytest.mark.parametrize("node", [("fill", []), 7, ("fill", [], [], "stack"), ("fill", [], "x", 0), (1, [], [], 0)])
    def test_a_node_has_four_parts(self, watch: Watch, node: object) -> None:
        with pytest.raises((TypeError, ValueError)):
            watch.detector.graph([node])  # type: ignore[list-item]  # the mistake
