"""What graphs do with memory: their nodes, their order, and what changes them."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

import pytest

from support.core import for_tests
from support.launches import READ, WRITE, Launches, layout, number, pointer
from support.races import access
from support.stand_in_driver import (
    ARRAY_MEMORY,
    CHILD,
    CONDITIONAL,
    DEVICE_MEMORY,
    EMPTY,
    HOST,
    HOST_MEMORY,
    KERNEL,
    MEMCPY,
    MEMSET,
    RECORD,
    UNIFIED_MEMORY,
    WAIT,
    Arguments,
    Extra,
    KernelNode,
    MemcpyEnd,
    MemcpyNode,
    MemsetNode,
    Node,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda import _core

A, B, C, SIZE = 0x7F0000100000, 0x7F0000200000, 0x7F0000300000, 0x1000
EXEC, OTHER = 0xE000, 0xE010
EVENT = 0xEE00


class Graphs:
    """A watch of graphs, two streams, and kernels that read or write what their only parameter points to.

    Attributes:
        launches: The reader of launches.
        driver: The stand-in driver.
        watch: The detector.
        graphs: The watch of graphs.
        main: A stream.
        side: Another stream.
    """

    def __init__(self, *without: str) -> None:
        self.launches = Launches()
        self.driver, self.watch = self.launches.driver, self.launches.watch
        self.graphs = for_tests.GraphWatch(self.launches.reader, self.driver.addresses(*without))
        self.main, self.side = self.watch.streams(2)
        for address in (A, B, C):
            self.launches.own(address, SIZE)
        table = self.launches.table
        table.describe_kernel(1, "read", layout([number(A)]), [pointer(0, READ, "x")], True)
        table.describe_kernel(1, "write", layout([number(A)]), [pointer(0, WRITE, "y")], True)
        self.read = self.launches.kernel(number(A), name="read")
        self.write = self.launches.kernel(number(A), name="write")

    def kernel(self, function: int, address: int) -> Node:
        """Return a node that is a kernel."""
        arguments = Arguments(number(address))
        return Node(KERNEL, KernelNode(function=function, parameters=arguments.address), arguments)

    def graph(self, *nodes: tuple[Node, Sequence[int]]) -> tuple[int, list[int]]:
        """Make a graph of nodes with the places of their dependencies; return its handle and those of the nodes."""
        graph = self.driver.graph()
        handles: list[int] = []
        for node, after in nodes:
            handles.append(self.driver.add(graph, node, *(handles[place] for place in after)))
        return graph, handles

    def instantiated(self, *nodes: tuple[Node, Sequence[int]], executable: int = EXEC) -> list[int]:
        """Instantiate a graph of nodes; return the handles of the nodes."""
        graph, handles = self.graph(*nodes)
        self.graphs.instantiated(executable, graph)
        return handles

    def launch(self, stream: int | None = None, executable: int = EXEC) -> None:
        """Launch an executable graph."""
        self.graphs.launched(executable, 0, self.main if stream is None else stream)

    def touch(self, kind: int, address: int = A, size: int = 8, stream: int | None = None) -> None:
        """Let an operation on the side stream use memory."""
        self.watch.detector.work(0, self.side if stream is None else stream, "touch", [access(kind, address, size)])

    def pairs_after(
        self, kind: int, address: int = A, size: int = 8, stream: int | None = None
    ) -> list[tuple[str, str]]:
        """Let an operation on the side stream use memory, and return the same as :meth:`pairs`."""
        self.touch(kind, address, size, stream)
        return self.pairs()

    def pairs_of_touch(self, kind: int, address: int) -> list[tuple[str, str]]:
        """Let an operation on the side stream use a byte; return the names of the operations of the races."""
        self.watch.detector.forget_races()
        self.touch(kind, address, 1)
        return self.pairs()

    def begin(self, stream: int, graph: int, capture: int = 1) -> None:
        """Begin a capture."""
        self.driver.captures[stream] = (graph, capture, [])

    def capture(self, stream: int, node: Node, name: str, *uses: _core.RaceUse) -> int:
        """Capture an operation, and return its node."""
        handle = self.driver.add_captured(stream, node)
        self.graphs.captured(0, stream, name, uses)
        return handle

    def capture_fill(self, graph: int) -> None:
        """Capture one operation, which writes 8 bytes at ``A``, into ``graph``."""
        self.begin(self.main, graph)
        self.capture(self.main, self.kernel(self.write, A), "fill", access(WRITE, A, 8))
        del self.driver.captures[self.main]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the names of the operations of the races since the last call."""
        return [(race.previous.operation, race.current.operation) for race in self.watch.taken()]


@pytest.fixture
def graphs() -> Graphs:
    """A watch of graphs."""
    return Graphs()


class TestNodes:
    def test_branches_that_use_the_same_memory_race(self, graphs: Graphs) -> None:
        root = Node(EMPTY)
        graphs.instantiated((root, []), (graphs.kernel(graphs.write, A), [0]), (graphs.kernel(graphs.read, A), [0]))
        graphs.launch()
        (race,) = graphs.watch.taken()
        assert (race.kind, race.previous.operation, race.current.operation) == ("read after write", "write", "read")
        assert (race.previous.label, race.current.label) == ("y", "x")

    def test_a_chain_does_not_race(self, graphs: Graphs) -> None:
        nodes = [(graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.read, A), [0])]
        graphs.instantiated(*nodes, (graphs.kernel(graphs.write, A), [1]))
        for stream in (graphs.main, graphs.side, graphs.main):
            graphs.launch(stream)
        assert graphs.watch.races == []

    def test_the_order_of_the_nodes_comes_from_the_edges(self, graphs: Graphs) -> None:
        graph, (last, first, middle) = graphs.graph(
            (graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.write, A), []), (Node(HOST), [])
        )
        graphs.driver.graphs[graph].edges = [(first, middle), (middle, last)]
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.watch.races == []
        assert graphs.watch.detector.operations == 4

    def test_a_kernel_with_a_block_is_read(self, graphs: Graphs) -> None:
        extra = Extra(number(A))
        graphs.instantiated((Node(KERNEL, KernelNode(function=graphs.write, extra=extra.address), extra), []))
        graphs.launch()
        assert graphs.pairs_after(READ) == [("write", "touch")]

    def test_a_kernel_without_a_context_is_read(self, graphs: Graphs) -> None:
        arguments = Arguments(number(A))
        graphs.instantiated(
            (Node(KERNEL, KernelNode(kernel=graphs.write, parameters=arguments.address), arguments), [])
        )
        graphs.launch()
        assert graphs.pairs_after(READ) == [("write", "touch")]

    @pytest.mark.parametrize("memory", [DEVICE_MEMORY, UNIFIED_MEMORY, HOST_MEMORY])
    def test_a_copy_reads_and_writes_the_rows(self, graphs: Graphs, memory: int) -> None:
        side = "host" if memory == HOST_MEMORY else "device"
        source = MemcpyEnd(x=4, y=1, z=1, memory_type=memory, pitch=64, height=4, **{side: A})
        target = MemcpyEnd(memory_type=memory, pitch=8, height=2, **{side: B})
        graphs.instantiated((Node(MEMCPY, MemcpyNode(source, target, width=8, height=2, depth=2)), []))
        graphs.launch()
        begin = A + 4 + 64 + 256
        for place in (begin - 1, begin + 8, begin + 63, begin + 72, begin + 255, begin + 264):
            assert graphs.pairs_of_touch(WRITE, place) == []
        for place in (begin, begin + 7, begin + 64, begin + 256, begin + 320, begin + 327):
            assert graphs.pairs_of_touch(WRITE, place) == [("memcpy", "touch")]
        assert graphs.pairs_of_touch(READ, B + 31) == [("memcpy", "touch")]
        assert graphs.pairs_of_touch(READ, B + 32) == []

    def test_a_copy_to_an_array_of_the_driver_has_one_end(self, graphs: Graphs) -> None:
        source = MemcpyEnd(memory_type=DEVICE_MEMORY, device=A)
        target = MemcpyEnd(memory_type=ARRAY_MEMORY, device=B)
        graphs.instantiated((Node(MEMCPY, MemcpyNode(source, target, 8, 1, 1)), []))
        graphs.launch()
        assert graphs.pairs_after(WRITE, B) == []
        assert graphs.pairs_after(WRITE, A) == [("memcpy", "touch")]

    def test_a_fill_writes_the_rows(self, graphs: Graphs) -> None:
        graphs.instantiated((Node(MEMSET, MemsetNode(A, 64, 0, 4, 2, 3)), []))
        graphs.launch()
        for place in (A + 8, A + 63, A + 72, A + 136):
            assert graphs.pairs_of_touch(READ, place) == []
        for place in (A, A + 7, A + 64, A + 135):
            assert graphs.pairs_of_touch(READ, place) == [("memset", "touch")]

    def test_nothing_is_copied_or_filled(self, graphs: Graphs) -> None:
        end = MemcpyEnd(memory_type=DEVICE_MEMORY, device=A)
        graphs.instantiated(
            (Node(MEMCPY, MemcpyNode(end, end, 8, 0, 1)), []), (Node(MEMSET, MemsetNode(A, 0, 0, 4)), [])
        )
        graphs.launch()
        assert graphs.pairs_after(WRITE) == []

    def test_without_the_edges_no_two_nodes_are_accused(self) -> None:
        graphs = Graphs("cuGraphGetEdges", "cuGraphGetEdges_v2")
        graphs.instantiated((graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.read, A), []))
        graphs.launch()
        assert graphs.pairs() == []

    def test_an_older_driver_tells_edges_without_data(self) -> None:
        graphs = Graphs("cuGraphGetEdges_v2")
        graphs.instantiated((graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.read, A), []))
        graphs.launch()
        assert graphs.pairs() == [("write", "read")]

    def test_a_graph_that_the_driver_does_not_tell_has_no_nodes(self, graphs: Graphs) -> None:
        graphs.graphs.instantiated(EXEC, 0x1)
        graphs.launch()
        assert graphs.watch.races == []

    def test_notes_around_an_instantiation_are_not_those_of_the_nodes(self, graphs: Graphs) -> None:
        graph, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        notes = [("", True, [(access(READ, B, 8), True, True)])]
        graphs.graphs.instantiated(EXEC, graph, notes)
        graphs.launch()
        assert graphs.pairs_of_touch(WRITE, B) == []
        assert graphs.pairs_of_touch(READ, A) == [("write", "touch")]


class TestEvents:
    def test_a_graph_that_waits_comes_after_the_record(self, graphs: Graphs) -> None:
        graphs.instantiated((Node(WAIT, EVENT), []), (graphs.kernel(graphs.read, A), [0]))
        graphs.touch(WRITE)
        graphs.watch.detector.event_recorded(EVENT, 0, graphs.side)
        graphs.launch()
        assert graphs.watch.races == []

    def test_a_graph_that_records_comes_before_the_wait(self, graphs: Graphs) -> None:
        graphs.instantiated((graphs.kernel(graphs.write, A), []), (Node(RECORD, EVENT), [0]))
        graphs.launch()
        graphs.watch.detector.event_waited(EVENT, 0, graphs.side)
        graphs.touch(READ)
        assert graphs.watch.races == []

    def test_a_node_that_waits_for_a_record_of_the_graph_comes_after_it(self, graphs: Graphs) -> None:
        graphs.instantiated(
            (graphs.kernel(graphs.write, A), []),
            (Node(RECORD, EVENT), [0]),
            (Node(WAIT, EVENT), []),
            (graphs.kernel(graphs.read, A), [2]),
        )
        graphs.launch()
        assert graphs.watch.races == []

    def test_another_event_may_be_set(self, graphs: Graphs) -> None:
        (wait, _) = graphs.instantiated((Node(WAIT, EVENT), []), (graphs.kernel(graphs.read, A), [0]))
        graphs.touch(WRITE)
        graphs.watch.detector.event_recorded(EVENT, 0, graphs.side)
        graphs.graphs.event_node_set(EXEC, wait, EVENT + 16)
        graphs.launch()
        assert graphs.pairs() == [("touch", "read")]
        graphs.graphs.event_node_set(EXEC, wait, EVENT)
        graphs.launch()
        assert graphs.pairs() == []


class TestChildren:
    def test_the_nodes_of_a_child_graph_take_its_place(self, graphs: Graphs) -> None:
        child, _ = graphs.graph((graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.write, B), []))
        nodes = [(graphs.kernel(graphs.write, A), []), (Node(CHILD, child), [0]), (graphs.kernel(graphs.read, B), [1])]
        graphs.instantiated(*nodes, (graphs.kernel(graphs.read, A), [1]))
        graphs.launch()
        assert graphs.watch.races == []

    def test_the_nodes_of_a_child_graph_race_with_those_beside_it(self, graphs: Graphs) -> None:
        inner, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        child, _ = graphs.graph((Node(EMPTY), []), (Node(CHILD, inner), [0]))
        graphs.instantiated((Node(CHILD, child), []), (graphs.kernel(graphs.read, A), []))
        graphs.launch()
        assert graphs.pairs() == [("write", "read")]

    def test_a_child_graph_without_nodes_keeps_the_order(self, graphs: Graphs) -> None:
        child, _ = graphs.graph()
        nodes = [(graphs.kernel(graphs.write, A), []), (Node(CHILD, child), [0])]
        graphs.instantiated(*nodes, (graphs.kernel(graphs.read, A), [1]))
        graphs.launch()
        assert graphs.watch.races == []

    def test_a_child_graph_that_holds_itself_ends(self, graphs: Graphs) -> None:
        graph, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        graphs.driver.add(graph, Node(CHILD, graph))
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert set(graphs.pairs()) == {("write", "write")}

    def test_another_child_graph_may_be_set(self, graphs: Graphs) -> None:
        child, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        other, _ = graphs.graph((graphs.kernel(graphs.write, B), []))
        longer, _ = graphs.graph((graphs.kernel(graphs.write, C), []), (graphs.kernel(graphs.write, C), [0]))
        (node,) = graphs.instantiated((Node(CHILD, child), []))
        graphs.graphs.child_node_set(EXEC, node, other)
        graphs.launch()
        assert graphs.pairs_after(READ, A) == []
        assert graphs.pairs_after(READ, B) == [("write", "touch")]
        graphs.graphs.child_node_set(EXEC, node, longer)
        graphs.watch.detector.device_synchronized(0)
        graphs.launch()
        for address in (A, B, C):
            graphs.touch(READ, address)
        assert graphs.pairs() == []

    def test_a_child_graph_has_the_uses_that_were_captured(self, graphs: Graphs) -> None:
        child = graphs.driver.graph()
        graphs.capture_fill(child)
        graph = graphs.driver.graph()
        node = graphs.driver.add(graph, Node(CHILD, graphs.driver.clone(child)))
        graphs.graphs.child_added(node, graph, child)
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, A + 8) == []
        assert graphs.pairs_after(READ, A) == [("fill", "touch")]

    def test_a_captured_launch_is_a_child_graph(self, graphs: Graphs) -> None:
        child = graphs.driver.graph()
        graphs.capture_fill(child)
        graphs.graphs.instantiated(OTHER, child)
        graph = graphs.driver.graph()
        graphs.begin(graphs.main, graph, 2)
        graphs.driver.add_captured(graphs.main, Node(CHILD, graphs.driver.clone(child)))
        graphs.graphs.launch_captured(OTHER, 0, graphs.main)
        del graphs.driver.captures[graphs.main]
        graphs.graphs.executable_destroyed(OTHER)
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, A + 8) == []
        assert graphs.pairs_after(READ, A) == [("fill", "touch")]


class TestConditionalNodes:
    """Graphs with a node that has bodies."""

    def conditional(self, graphs: Graphs, *bodies: int) -> tuple[int, int]:
        """Return a graph, and its only node, which has ``bodies``."""
        graph = graphs.driver.graph()
        node = graphs.driver.add(graph, Node(CONDITIONAL))
        graphs.graphs.conditional_added(node, graph, list(bodies))
        return graph, node

    def test_the_work_of_a_body_races_possibly(self, graphs: Graphs) -> None:
        body, _ = graphs.graph((graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.read, B), [0]))
        graph, _ = self.conditional(graphs, body)
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        graphs.touch(READ, A)
        (race,) = graphs.watch.taken()
        assert (race.previous.operation, race.current.operation) == ("write", "touch")
        assert race.previous.confidence == "possible"

    def test_bodies_come_between_the_work_before_and_after(self, graphs: Graphs) -> None:
        body, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        graph = graphs.driver.graph()
        first = graphs.driver.add(graph, graphs.kernel(graphs.write, A))
        node = graphs.driver.add(graph, Node(CONDITIONAL), first)
        graphs.driver.add(graph, graphs.kernel(graphs.write, A), node)
        graphs.graphs.conditional_added(node, graph, [body])
        graphs.graphs.instantiated(EXEC, graph)
        for _ in range(2):
            graphs.launch()
        assert graphs.watch.races == []

    def test_a_body_has_the_uses_that_were_captured(self, graphs: Graphs) -> None:
        body = graphs.driver.graph()
        graph, _ = self.conditional(graphs, body)
        graphs.capture_fill(body)
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, A + 8) == []
        assert graphs.pairs_after(READ, A) == [("fill", "touch")]

    def test_bodies_have_bodies(self, graphs: Graphs) -> None:
        innermost, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        body, _ = self.conditional(graphs, innermost)
        graph, _ = self.conditional(graphs, body)
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, A) == [("write", "touch")]

    def test_a_body_that_holds_itself_ends(self, graphs: Graphs) -> None:
        graph = graphs.driver.graph()
        node = graphs.driver.add(graph, Node(CONDITIONAL))
        graphs.graphs.conditional_added(node, graph, [graph])
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.watch.races == []
        graphs.graphs.graph_destroyed(graph)
        assert graphs.graphs.sizes()["captured_nodes"] == 0

    def test_the_nodes_of_bodies_are_forgotten_with_the_graph(self, graphs: Graphs) -> None:
        body = graphs.driver.graph()
        graph, _ = self.conditional(graphs, body)
        graphs.capture_fill(body)
        assert graphs.graphs.sizes()["captured_nodes"] == 2
        graphs.graphs.graph_destroyed(graph)
        assert graphs.graphs.sizes()["captured_nodes"] == 0

    def test_a_new_node_with_the_handle_of_an_old_one_has_its_own_bodies(self, graphs: Graphs) -> None:
        gone, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        body, _ = graphs.graph((graphs.kernel(graphs.write, B), []))
        graph, node = self.conditional(graphs, gone)
        graphs.graphs.conditional_added(node, graph, [body])
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, A) == []
        assert graphs.pairs_after(READ, B) == [("write", "touch")]

    def test_a_node_from_before_the_watch_has_no_known_work(self, graphs: Graphs) -> None:
        graph = graphs.driver.graph()
        graphs.driver.add(graph, Node(CONDITIONAL))
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, A) == []


class TestCaptures:
    def test_a_node_has_the_uses_and_the_stack_of_its_capture(self, graphs: Graphs) -> None:
        def capture() -> None:
            graphs.capture(graphs.main, graphs.kernel(graphs.write, A), "fill", access(WRITE, A, 8, label="out"))

        graph = graphs.driver.graph()
        graphs.begin(graphs.main, graph)
        capture()
        graphs.watch.detector.memory_freed(A)
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        graphs.touch(READ, A + 8)
        assert graphs.watch.races == []
        graphs.touch(READ)
        (race,) = graphs.watch.taken()
        assert (race.previous.operation, race.previous.label) == ("fill", "out")
        assert race.previous.stack[0]["name"] == "capture"
        assert race.previous.launch_stack is not None
        assert race.previous.launch_stack[0]["name"] == "launch"

    @pytest.mark.parametrize("without", [(), ("cuStreamGetCaptureInfo_v3",)])
    def test_an_operation_that_makes_no_node_leaves_the_node_before(self, without: tuple[str, ...]) -> None:
        graphs = Graphs(*without)
        graph = graphs.driver.graph()
        graphs.begin(graphs.main, graph)
        graphs.capture(graphs.main, graphs.kernel(graphs.write, A), "fill", access(WRITE, A, 8))
        graphs.graphs.captured(0, graphs.main, "memcpy", ())
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ) == [("fill", "touch")]

    def test_a_stream_that_does_not_capture_has_no_nodes(self, graphs: Graphs) -> None:
        graphs.graphs.captured(0, graphs.main, "fill", (access(WRITE, A, 8),))
        assert graphs.graphs.sizes()["captured_nodes"] == 0

    def test_a_clone_has_what_was_captured(self, graphs: Graphs) -> None:
        graph = graphs.driver.graph()
        graphs.begin(graphs.main, graph)
        graphs.capture(graphs.main, graphs.kernel(graphs.write, A), "fill", access(WRITE, A, 8))
        clone = graphs.driver.clone(graph)
        graphs.graphs.cloned(clone, graph)
        graphs.graphs.graph_destroyed(graph)
        graphs.graphs.instantiated(EXEC, clone)
        graphs.launch()
        assert graphs.pairs_after(READ, A + 8) == []
        assert graphs.pairs_after(READ) == [("fill", "touch")]
        graphs.graphs.graph_destroyed(clone)
        assert graphs.graphs.sizes()["captured_nodes"] == 0

    def test_a_node_with_other_parameters_is_read_anew(self, graphs: Graphs) -> None:
        graph = graphs.driver.graph()
        graphs.begin(graphs.main, graph)
        node = graphs.capture(graphs.main, graphs.kernel(graphs.write, A), "fill", access(WRITE, A, 8))
        graphs.driver.nodes[node] = graphs.kernel(graphs.read, B)
        graphs.graphs.node_changed(node)
        graphs.graphs.instantiated(EXEC, graph)
        graphs.launch()
        graphs.touch(WRITE, A)
        assert graphs.pairs_after(WRITE, B) == [("read", "touch")]

    def test_another_capture_into_a_handle_forgets_the_failed_one(self, graphs: Graphs) -> None:
        graph = graphs.driver.graph()
        graphs.begin(graphs.main, graph, 1)
        graphs.capture(graphs.main, graphs.kernel(graphs.write, A), "fill", access(WRITE, A, 8))
        graphs.begin(graphs.main, graph, 2)
        graphs.capture(graphs.main, graphs.kernel(graphs.write, B), "fill", access(WRITE, B, 8))
        assert graphs.graphs.sizes()["captured_nodes"] == 1

    def test_captures_that_fail_are_bounded(self, graphs: Graphs) -> None:
        for number_of_capture in range(5000):
            graphs.driver.captures[graphs.main] = (
                0x100000 + 16 * number_of_capture,
                number_of_capture,
                [16 * number_of_capture + 8],
            )
            graphs.graphs.captured(0, graphs.main, "fill", ())
        assert graphs.graphs.sizes()["captured_nodes"] == 4096


class TestChanges:
    def test_an_executable_from_before_the_watch_has_no_known_accesses(self, graphs: Graphs) -> None:
        graphs.launch()
        graphs.touch(WRITE)
        graphs.launch(graphs.side)
        assert graphs.watch.races == []
        assert graphs.watch.detector.operations == 3

    def test_launches_of_an_unknown_executable_come_one_after_another(self, graphs: Graphs) -> None:
        graphs.touch(WRITE, stream=graphs.main)
        graphs.launch(graphs.main)
        graphs.launch(graphs.side)
        graphs.touch(READ)
        assert graphs.watch.races == []

    def test_a_kernel_node_may_be_set(self, graphs: Graphs) -> None:
        (node,) = graphs.instantiated((graphs.kernel(graphs.write, A), []))
        other = graphs.kernel(graphs.write, B)
        graphs.graphs.kernel_node_set(EXEC, node, ctypes.addressof(other.content))
        graphs.launch()
        assert graphs.pairs_after(READ, A) == []
        assert graphs.pairs_after(READ, B) == [("write", "touch")]

    def test_a_copy_and_a_fill_may_be_set(self, graphs: Graphs) -> None:
        end = MemcpyEnd(memory_type=DEVICE_MEMORY, device=A)
        copy, fill = graphs.instantiated(
            (Node(MEMCPY, MemcpyNode(end, end, 8, 1, 1)), []), (Node(MEMSET, MemsetNode(A, 0, 0, 1, 8, 1)), [0])
        )
        other = MemcpyEnd(memory_type=DEVICE_MEMORY, device=B)
        copied, filled = MemcpyNode(other, other, 8, 1, 1), MemsetNode(C, 0, 0, 1, 8, 1)
        graphs.graphs.memcpy_node_set(EXEC, copy, ctypes.addressof(copied))
        graphs.graphs.memset_node_set(EXEC, fill, ctypes.addressof(filled))
        graphs.launch()
        for address in (A, B, C):
            graphs.touch(READ, address)
        assert graphs.pairs() == [("memcpy", "touch"), ("memset", "touch")]

    def test_a_node_with_unknown_parameters_has_no_known_accesses(self, graphs: Graphs) -> None:
        (node,) = graphs.instantiated((graphs.kernel(graphs.write, A), []))
        graphs.graphs.node_set(EXEC, node)
        graphs.graphs.node_set(EXEC, node + 1)  # no node of the graph
        graphs.launch()
        assert graphs.pairs_after(READ) == []

    def test_a_disabled_node_does_nothing(self, graphs: Graphs) -> None:
        (node,) = graphs.instantiated((graphs.kernel(graphs.write, A), []))
        graphs.graphs.enabled(EXEC, node, False)
        other = graphs.kernel(graphs.write, B)
        graphs.graphs.kernel_node_set(EXEC, node, ctypes.addressof(other.content))
        graphs.launch()
        graphs.touch(READ, A)
        assert graphs.pairs_after(READ, B) == []
        graphs.graphs.enabled(EXEC, node, True)
        graphs.launch()
        assert graphs.pairs() == [("touch", "write")]

    def test_a_disabled_node_stays_disabled_in_an_update(self, graphs: Graphs) -> None:
        (node,) = graphs.instantiated((graphs.kernel(graphs.write, A), []))
        graphs.graphs.enabled(EXEC, node, False)
        graph, _ = graphs.graph((graphs.kernel(graphs.write, B), []))
        graphs.graphs.updated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, B) == []
        graphs.graphs.enabled(EXEC, node, True)
        graphs.launch()
        assert graphs.pairs() == [("touch", "write")]

    def test_an_update_gives_the_nodes_other_parameters(self, graphs: Graphs) -> None:
        (node, _) = graphs.instantiated((graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.read, A), [0]))
        graph, _ = graphs.graph((graphs.kernel(graphs.write, B), []), (graphs.kernel(graphs.read, B), [0]))
        graphs.launch()
        graphs.graphs.updated(EXEC, graph)
        graphs.graphs.graph_destroyed(graph)
        graphs.launch(graphs.side)
        graphs.touch(WRITE, A)  # the side stream comes after all launches
        assert graphs.pairs() == []
        assert graphs.pairs_after(READ, B, stream=graphs.main) == [("write", "touch")]
        other = graphs.kernel(graphs.write, C)
        graphs.graphs.kernel_node_set(EXEC, node, ctypes.addressof(other.content))
        graphs.launch(graphs.side)
        graphs.touch(READ, C, stream=graphs.main)
        assert ("write", "touch") in graphs.pairs()

    def test_an_update_of_an_unknown_executable_makes_it_known(self, graphs: Graphs) -> None:
        graph, _ = graphs.graph((graphs.kernel(graphs.write, B), []))
        graphs.graphs.updated(EXEC, graph)
        graphs.launch()
        assert graphs.pairs_after(READ, B) == [("write", "touch")]

    def test_a_handle_that_is_another_executable_by_now(self, graphs: Graphs) -> None:
        graphs.instantiated((graphs.kernel(graphs.write, A), []))
        graphs.graphs.executable_destroyed(EXEC)
        graphs.instantiated((graphs.kernel(graphs.write, B), []))
        graphs.launch()
        assert graphs.pairs_after(READ, A) == []
        assert graphs.pairs_after(READ, B) == [("write", "touch")]

    def test_executables_may_be_destroyed_while_other_threads_launch_them(self, graphs: Graphs) -> None:
        graph, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        done = threading.Event()

        def launch() -> None:
            while not done.is_set():
                graphs.launch()

        threads = [threading.Thread(target=launch) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(300):
            graphs.graphs.instantiated(EXEC, graph)
            graphs.graphs.updated(EXEC, graph)
            graphs.graphs.executable_destroyed(EXEC)
        done.set()
        for thread in threads:
            thread.join()
        assert graphs.watch.races == []


class TestBounds:
    def test_launches_keep_the_size(self, graphs: Graphs) -> None:
        graphs.instantiated((graphs.kernel(graphs.write, A), []), (graphs.kernel(graphs.read, B), []))
        sizes = []
        for _ in range(2):
            for _ in range(20_000):
                graphs.launch()
            sizes.append({**for_tests.sizes_of_detector(graphs.watch.detector), **graphs.graphs.sizes()})
        assert sizes[0] == sizes[1]

    def test_graphs_that_come_and_go_leave_nothing(self, graphs: Graphs) -> None:
        for turn in range(200):
            graph = graphs.driver.graph()
            graphs.begin(graphs.main, graph, turn)
            for _ in range(3):
                graphs.capture(graphs.main, graphs.kernel(graphs.write, A), "fill", access(WRITE, A, 8))
            graphs.graphs.instantiated(EXEC, graph)
            graphs.graphs.graph_destroyed(graph)
            graphs.launch()
            graphs.graphs.executable_destroyed(EXEC)
            graphs.watch.detector.stream_synchronized(0, graphs.main)
        assert graphs.graphs.sizes() == {"executables": 0, "captured_nodes": 0}
        assert for_tests.sizes_of_detector(graphs.watch.detector)["slots"] <= 4

    def test_updates_give_their_slots_back(self, graphs: Graphs) -> None:
        graph, _ = graphs.graph((graphs.kernel(graphs.write, A), []))
        graphs.graphs.instantiated(EXEC, graph)
        for _ in range(200):
            graphs.graphs.updated(EXEC, graph)
            graphs.launch()
            graphs.watch.detector.stream_synchronized(0, graphs.main)
        assert for_tests.sizes_of_detector(graphs.watch.detector)["slots"] <= 5
