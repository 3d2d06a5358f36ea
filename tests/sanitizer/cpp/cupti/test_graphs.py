"""What the detector is told of the driver's calls for graphs."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

import pytest

from support.cupti import FAILURE, FUNCTION, MAIN, MEMORY, MORE_MEMORY, SIDE, Parameters, Use, Watched

if TYPE_CHECKING:
    from support.cupti import Cupti

GRAPH, OTHER_GRAPH, EXECUTABLE, NODE, OTHER_NODE = 0x6000, 0x6100, 0x7000, 0x6010, 0x6110
KERNEL, MEMCPY, MEMSET, CHILD, CONDITIONAL = 0, 1, 2, 4, 13
LAUNCHES = [("cuGraphLaunch", 0), ("cuGraphLaunch_ptsz", 2)]
INSTANTIATIONS = [
    ("cuGraphInstantiate", "PPPPN"),
    ("cuGraphInstantiate_v2", "PPPPN"),
    ("cuGraphInstantiateWithFlags", "PPQ"),
    ("cuGraphInstantiateWithParams", "PPP"),
    ("cuGraphInstantiateWithParams_ptsz", "PPP"),
]


def written(address: int, size: int = 256, name: str = "memset", kind: str = "write") -> Use:
    return Use(name, 0, MAIN, kind, address, (size,), (1,), "exact")


def instantiate(cupti: Cupti, name: str = "cuGraphInstantiateWithFlags", layout: str = "PPQ") -> None:
    executable = ctypes.c_uint64(EXECUTABLE)
    cupti.call(name, layout, ctypes.addressof(executable), GRAPH, *[0] * (len(layout) - 2))


def launch(cupti: Cupti, stream: int = MAIN) -> None:
    cupti.call("cuGraphLaunch", "PP", EXECUTABLE, stream)


@pytest.fixture
def graph(cupti: Cupti, watched: Watched) -> Cupti:
    """A graph with a node that fills 256 bytes."""
    assert watched.steps() == []
    cupti.stub.stub_add_node(GRAPH, NODE, MEMSET, MEMORY, 256)
    return cupti


@pytest.mark.parametrize(("name", "layout"), INSTANTIATIONS)
def test_a_launch_uses_what_the_nodes_use(graph: Cupti, watched: Watched, name: str, layout: str) -> None:
    instantiate(graph, name, layout)
    assert watched.uses() == []
    launch(graph)
    assert watched.uses() == [written(MEMORY)]


@pytest.mark.parametrize(("name", "default"), LAUNCHES)
def test_a_launch_is_on_its_stream(graph: Cupti, watched: Watched, name: str, default: int) -> None:
    instantiate(graph)
    graph.call(name, "PP", EXECUTABLE, SIDE)
    assert {use.stream for use in watched.uses()} == {SIDE}
    watched.detector.device_synchronized(0)
    graph.call(name, "PP", EXECUTABLE, 0)
    assert {use.stream for use in watched.uses()} == {default}


def test_a_launch_races_with_other_streams(graph: Cupti, watched: Watched) -> None:
    instantiate(graph)
    graph.fill(SIDE)
    launch(graph)
    assert [race.kind for race in watched.found()] == ["write after write"]
    watched.detector.device_synchronized(0)
    launch(graph)
    graph.record(MAIN)
    graph.wait(SIDE)
    graph.fill(SIDE)
    assert watched.found() == []


def test_a_failed_instantiation_tells_nothing(graph: Cupti, watched: Watched) -> None:
    graph.call("cuGraphInstantiateWithFlags", "PPQ", 0, GRAPH, 0, status=FAILURE)
    launch(graph)
    assert watched.uses() == []


@pytest.mark.parametrize("name", ["cuGraphExecUpdate", "cuGraphExecUpdate_v2"])
def test_an_update_replaces_the_uses(graph: Cupti, watched: Watched, name: str) -> None:
    instantiate(graph)
    graph.stub.stub_add_node(OTHER_GRAPH, OTHER_NODE, MEMSET, MEMORY + 1024, 256)
    graph.call(name, "PPPP", EXECUTABLE, OTHER_GRAPH, 0, 0)
    launch(graph)
    assert watched.uses() == [written(MEMORY + 1024)]


def memset_parameters() -> bytes:
    return struct.pack("@QNIINN", MEMORY + 2048, 0, 0, 4, 64, 1)


def memcpy_parameters() -> bytes:
    def end(address: int) -> bytes:
        return struct.pack("@NNNNiQQPPNN0Q", 0, 0, 0, 0, 2, 0, address, 0, 0, 256, 1)

    return end(MEMORY + 4096) + end(MEMORY + 2048) + struct.pack("@NNN", 256, 1, 1)


def kernel_parameters(parameters: int) -> bytes:
    return struct.pack("@P7IPPPP", FUNCTION, 1, 1, 1, 1, 1, 1, 0, parameters, 0, 0, 0)


def set_node(cupti: Cupti, name: str, parameters: bytes) -> None:
    kept = ctypes.create_string_buffer(parameters + bytes(256))
    cupti.call(name, "PPPP", EXECUTABLE, NODE, ctypes.addressof(kept), 0)


def of_type(kind: int, parameters: bytes) -> bytes:
    return struct.pack("@4i", kind, 0, 0, 0) + parameters


@pytest.mark.parametrize("generic", [False, True])
def test_a_fill_gets_other_parameters(graph: Cupti, watched: Watched, generic: bool) -> None:
    instantiate(graph)
    if generic:
        set_node(graph, "cuGraphExecNodeSetParams", of_type(MEMSET, memset_parameters()))
    else:
        set_node(graph, "cuGraphExecMemsetNodeSetParams", memset_parameters())
    launch(graph)
    assert watched.uses() == [written(MEMORY + 2048)]


@pytest.mark.parametrize("generic", [False, True])
def test_a_copy_gets_other_parameters(cupti: Cupti, watched: Watched, generic: bool) -> None:
    cupti.stub.stub_add_node(GRAPH, NODE, MEMCPY, MEMORY, 256)
    instantiate(cupti)
    if generic:
        set_node(cupti, "cuGraphExecNodeSetParams", of_type(MEMCPY, struct.pack("@iiP", 0, 0, 0) + memcpy_parameters()))
    else:
        set_node(cupti, "cuGraphExecMemcpyNodeSetParams", memcpy_parameters())
    launch(cupti)
    assert set(watched.uses()) == {
        written(MEMORY + 2048, name="memcpy"),
        written(MEMORY + 4096, name="memcpy", kind="read"),
    }


@pytest.mark.parametrize(
    "name", ["cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecNodeSetParams"]
)
def test_a_kernel_gets_other_parameters(graph: Cupti, watched: Watched, name: str) -> None:
    instantiate(graph)
    with Parameters(MORE_MEMORY, 0) as parameters:
        made = kernel_parameters(parameters)
        set_node(graph, name, of_type(KERNEL, made) if name == "cuGraphExecNodeSetParams" else made)
    launch(graph)
    (use,) = watched.uses()
    assert (use.kind, use.address, use.confidence) == ("read and write", MORE_MEMORY, "possible")


@pytest.mark.parametrize("generic", [False, True])
def test_a_child_graph_is_replaced(cupti: Cupti, watched: Watched, generic: bool) -> None:
    cupti.stub.stub_add_node(GRAPH, NODE, CHILD, 0x6200, 0)
    cupti.stub.stub_add_node(0x6200, 0x6210, MEMSET, MEMORY, 256)
    cupti.stub.stub_add_node(OTHER_GRAPH, OTHER_NODE, MEMSET, MEMORY + 1024, 256)
    instantiate(cupti)
    if generic:
        set_node(cupti, "cuGraphExecNodeSetParams", of_type(CHILD, struct.pack("@P", OTHER_GRAPH)))
    else:
        cupti.call("cuGraphExecChildGraphNodeSetParams", "PPP", EXECUTABLE, NODE, OTHER_GRAPH)
    launch(cupti)
    assert watched.uses() == [written(MEMORY + 1024)]


@pytest.mark.parametrize(("name", "before"), [("cuGraphAddNode", "PN"), ("cuGraphAddNode_v2", "PPN")])
def test_the_bodies_of_a_conditional_node_are_possible_uses(
    cupti: Cupti, watched: Watched, name: str, before: str
) -> None:
    body = 0x6200
    cupti.stub.stub_add_node(GRAPH, NODE, CONDITIONAL, 0, 0)
    cupti.stub.stub_add_node(body, 0x6210, MEMSET, MEMORY, 256)
    node, bodies = ctypes.c_uint64(NODE), ctypes.c_uint64(body)
    parameters = of_type(CONDITIONAL, struct.pack("@QiIPP", 88, 1, 1, ctypes.addressof(bodies), 0x1000))
    held = ctypes.create_string_buffer(parameters, 256)
    cupti.call(name, f"PP{before}P", ctypes.addressof(node), GRAPH, *[0] * len(before), ctypes.addressof(held))
    instantiate(cupti)
    launch(cupti)
    assert watched.uses() == [written(MEMORY)._replace(confidence="possible")]


def test_a_disabled_node_uses_nothing(graph: Cupti, watched: Watched) -> None:
    instantiate(graph)
    graph.call("cuGraphNodeSetEnabled", "PPI", EXECUTABLE, NODE, 0)
    launch(graph)
    assert watched.uses() == []
    graph.call("cuGraphNodeSetEnabled", "PPI", EXECUTABLE, NODE, 1)
    launch(graph)
    assert watched.uses() == [written(MEMORY)]


def test_a_destroyed_graph_has_no_slot_left(graph: Cupti, watched: Watched) -> None:
    instantiate(graph)
    launch(graph)
    graph.call("cuGraphExecDestroy", "P", EXECUTABLE, sides=1)
    launch(graph)  # the driver would refuse the launch of a handle that is gone
    watched.detector.device_synchronized(0)
    assert watched.uses() == []


def test_a_stream_that_is_met_in_a_capture_is_asked_nothing_that_invalidates_the_capture(
    cupti: Cupti, watched: Watched
) -> None:
    cupti.capture(SIDE, 5)
    cupti.call("cuStreamBeginCapture_v2", "PI", SIDE, 0)
    cupti.fill(SIDE)
    assert watched.uses() == []
    cupti.call("cuStreamEndCapture", "PP", SIDE, 0)
    cupti.capture(SIDE, 0)
    cupti.fill(SIDE)
    assert [use.stream for use in watched.uses()] == [SIDE]
    assert cupti.stub.stub_invalidated() == 0
