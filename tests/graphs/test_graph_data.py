"""The nodes of a graph and their dependencies, as ``CUDAGraph.get_graph_data()`` gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.captures import captured

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("allocator_as_found")

KEYS = {
    *("index", "node_type", "tools_id", "graph_id", "node_id"),
    *("kernel_name", "event_ptr", "dependencies", "dependents"),
}


def data_of(function: Callable[[], Any]) -> dict[str, Any]:
    graph, _ = captured(function, tcuda.CUDAGraph(keep_graph=True))
    graph.instantiate()
    data: dict[str, Any] = graph.get_graph_data()
    graph.reset()
    return data


def test_a_node_has_the_keys_of_torch(xp: Any) -> None:
    x = xp.zeros(10)
    data = data_of(lambda: x.__iadd__(1))
    assert set(data) == {"exec_graph_id", "nodes"}
    assert [set(node) for node in data["nodes"]] == [KEYS]


def test_dependencies_and_dependents_are_places_in_the_list(xp: Any) -> None:
    x, y = xp.zeros(10), xp.zeros(10)
    side = tcuda.Stream()

    def forked() -> None:
        here = tcuda.current_stream()
        x.fill(1)
        side.wait_stream(here)
        with tcuda.stream(side):
            y.fill(2)
        x.__iadd__(3)
        here.wait_stream(side)
        x.__iadd__(y)

    nodes = data_of(forked)["nodes"]
    first = next(node for node in nodes if not node["dependencies"])
    last = next(node for node in nodes if not node["dependents"])
    middle = {node["index"] for node in nodes} - {first["index"], last["index"]}
    assert len(middle) == 2
    assert set(first["dependents"]) == set(last["dependencies"]) == middle
    for place in middle:
        assert nodes[place]["dependencies"] == [first["index"]]
        assert nodes[place]["dependents"] == [last["index"]]


def test_the_types_of_nodes_are_the_words_of_torch(xp: Any) -> None:
    x, y, event = xp.zeros(10), xp.zeros(10), tcuda.Event(external=True)

    def work() -> None:
        xp.copyto(y, x)
        y.__iadd__(1)
        event.record()
        event.wait()

    nodes = data_of(work)["nodes"]
    kinds = [node["node_type"] for node in nodes]
    assert kinds.count("kernel") >= 1
    assert (kinds.count("event_record"), kinds.count("wait_event")) == (1, 1)
    for node in nodes:
        assert (node["kernel_name"] is not None) == (node["node_type"] == "kernel")
        expected = event.cuda_event if node["node_type"] in ("event_record", "wait_event") else 0
        assert node["event_ptr"] == expected


def test_a_kernel_has_its_name(xp: Any) -> None:
    x = xp.zeros(10)
    (node,) = data_of(lambda: x.__iadd__(1))["nodes"]
    assert "add" in node["kernel_name"]


def test_the_number_of_a_node_has_the_number_of_the_graph(xp: Any) -> None:
    x = xp.zeros(10)
    data = data_of(lambda: x.__iadd__(1).__imul__(2))
    for node in data["nodes"]:
        assert node["graph_id"] == data["exec_graph_id"]
        assert node["tools_id"] == data["exec_graph_id"] << 32 | node["node_id"]


@pytest.mark.emulated
def test_every_executable_graph_and_node_has_a_number_of_its_own(xp: Any) -> None:
    x = xp.zeros(10)
    graph, _ = captured(lambda: x.__iadd__(1).__imul__(2), tcuda.CUDAGraph(keep_graph=True))
    numbers = []
    for _ in range(2):
        graph.instantiate()
        data = graph.get_graph_data()
        numbers.append(data["exec_graph_id"])
        assert len({node["tools_id"] for node in data["nodes"]}) == 2
    assert len(set(numbers)) == 2
    assert 0 not in numbers


def test_the_graph_must_be_kept_captured_and_instantiated(xp: Any, graph: tcuda.CUDAGraph) -> None:
    x = xp.zeros(10)
    captured(lambda: x.__iadd__(1), graph)
    with pytest.raises(RuntimeError, match="keep_graph=true"):
        graph.get_graph_data()
    kept = tcuda.CUDAGraph(keep_graph=True)
    with pytest.raises(RuntimeError, match=r"until capture_end\(\) has been called"):
        kept.get_graph_data()
    captured(lambda: x.__iadd__(1), kept)
    with pytest.raises(RuntimeError, match=r"until instantiate\(\) has been called"):
        kept.get_graph_data()
