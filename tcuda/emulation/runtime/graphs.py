"""Graphs: captured operations, the operations that each of them waits for, and the time that they take together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

from tcuda._base.user_code import place_of
from tcuda._runtime.protocol import GraphContents, GraphNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tcuda.emulation.runtime.accesses import Accesses
    from tcuda.emulation.runtime.allocation import Allocation
    from tcuda.emulation.runtime.host_holds import HostHold, Range
    from tcuda.emulation.runtime.schedule import Operation

Places: TypeAlias = frozenset[int]
"""Nodes of a graph, by their places in the order of the capture."""


Order: TypeAlias = "Callable[[Sequence[Places]], Sequence[int]]"
"""A function that returns a legal order of nodes, given the nodes that each of them waits for."""


def _nothing() -> None:
    pass


class Node:
    """An operation of a graph.

    Args:
        name: The name of the node in a drawing of the graph.
        duration: The nanoseconds that the operation takes.
        work: A function that does the work of the operation on the memory.
        addresses: The device memory that the operation reads and writes.
        nbytes: The bytes of memory that the operation moves.
        accesses: The memory that the operation reads and writes, for a race detector.
        meets: Whether the work waits for other threads or processes.
        kind: The type of the node, in the words of :class:`~tcuda._runtime.protocol.GraphNode`.

    Attributes:
        body: The graph of the body of a conditional node; None for other nodes.
        event_handle: The event that the node records or waits for; 0 for other nodes.
        pageable: Whether the operation uses pageable memory of the host.
        devices: The devices of the streams of the operation.
        host: The page-locked memory of the host that the operation uses.
        hold: An object that keeps this memory in use while the node lives; None outside of graphs.
        stack: The number of the Python stack of the capture; 0 if neither a race detector nor the graph needs it.
    """

    event_handle = 0
    body: Graph | None = None

    def __init__(
        self,
        name: str,
        duration: int = 0,
        work: Callable[[], object] = _nothing,
        addresses: Iterable[int] = (),
        nbytes: int = 0,
        accesses: Accesses = (),
        *,
        meets: bool = False,
        kind: str = "kernel",
    ) -> None:
        self.name = name
        self.kind = kind
        self.duration = duration
        self.work = work
        self.addresses = tuple(addresses)
        self.nbytes = nbytes
        self.accesses = accesses
        self.host: tuple[Range, ...] = ()
        self.hold: HostHold | None = None
        self.stack = 0
        self.meets = meets
        self.pageable = False
        self.devices: Sequence[int] = ()

    def work_in(self, order: Order) -> Callable[[], object]:
        """Return a function that does the work, in which nodes of bodies follow each other in ``order``."""
        return self.work

    def complete(self, start: int) -> int:
        """Return when the operation is complete, given that it may start at ``start``."""
        return start + self.duration


class Graph:
    """Nodes in the order of the capture, which is a legal order of execution.

    Attributes:
        number: The number by which a drawing tells the graph from other graphs.
        nodes: The nodes.
        dependencies: For each node the nodes that it waits for, all of which come before it.
        allocated: The memory that was allocated in the capture. The graph keeps that memory, because every launch finds
            it at the same address.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.nodes: list[Node] = []
        self.dependencies: list[Places] = []
        self.allocated: list[Allocation] = []

    def add(self, node: Node, dependencies: Places) -> int:
        """Add ``node`` and return its place."""
        self.nodes.append(node)
        self.dependencies.append(dependencies)
        return len(self.nodes) - 1

    def with_nodes(self, nodes: list[Node]) -> Graph:
        """Return a graph of this shape with other nodes."""
        made = Graph(self.number)
        made.nodes, made.dependencies, made.allocated = nodes, self.dependencies, self.allocated
        return made

    def up_to(self, ends: Places) -> set[int]:
        """Return ``ends`` and all nodes that these wait for, directly or through others."""
        found: set[int] = set()
        missing = list(ends)
        while missing:
            place = missing.pop()
            if place not in found:
                found.add(place)
                missing.extend(self.dependencies[place])
        return found

    def complete(self, start: int) -> int:
        """Return when all nodes are complete, if each starts as soon as the nodes it waits for are complete."""
        last = start
        for _, end in self.times(start):
            if end > last:
                last = end
        return last

    def times(self, start: int) -> list[tuple[int, int]]:
        """Return for each node its start and its end, if each starts as soon as the nodes it waits for are complete."""
        times: list[tuple[int, int]] = []
        for node, dependencies in zip(self.nodes, self.dependencies, strict=True):
            begin = start
            for place in dependencies:
                end = times[place][1]
                if end > begin:
                    begin = end
            times.append((begin, node.complete(begin)))
        return times

    def contents(self) -> GraphContents:
        """Return the number of nodes, and the addresses of the memory that the nodes work on."""
        addresses = dict.fromkeys(address for node in self.nodes for address in node.addresses)
        addresses.update(dict.fromkeys(address for node in self.nodes for address, _ in node.host))
        return GraphContents(len(self.nodes), list(addresses))

    def described(self) -> list[GraphNode]:
        """Return what each node is and which nodes it waits for."""
        return [
            GraphNode(
                node.kind,
                self.number << 32 | place,
                node.name if node.kind == "kernel" else None,
                node.event_handle,
                sorted(dependencies),
                place_of(node.stack) if node.stack else None,
            )
            for place, (node, dependencies) in enumerate(zip(self.nodes, self.dependencies, strict=True))
        ]

    def bodies(self) -> Iterable[Graph]:
        """Return the bodies of the conditional nodes of the graph, without the bodies in these bodies."""
        return (node.body for node in self.nodes if node.body is not None)

    def addresses(self) -> Iterator[int]:
        """Yield the addresses that the nodes use, also those in bodies."""
        for node in self.nodes:
            yield from node.addresses
        for body in self.bodies():
            yield from body.addresses()

    def host(self) -> list[Range]:
        """Return the page-locked memory of the host that the nodes use, also those in bodies."""
        own = [each for node in self.nodes for each in node.host]
        return [*own, *(each for body in self.bodies() for each in body.host())]

    def dot(self, *, verbose: bool) -> str:
        """Return the graph in the language of Graphviz, as CUDA writes it.

        Args:
            verbose: Whether the drawing shows the memory of each node.
        """
        return "\n".join(["digraph dot {", *self._drawing(verbose=verbose), "}", ""])

    def _drawing(self, *, verbose: bool) -> list[str]:
        name = f"graph_{self.number}"
        lines = [f"subgraph cluster_{self.number} {{", f'label="{name}" graph[style="dashed"];']
        for place, node in enumerate(self.nodes):
            texts = [str(place), node.name]
            if verbose:
                texts += [*map(hex, node.addresses), f"{node.nbytes} bytes"]
            label = "".join(f"{_escaped(text)}\\n" for text in texts)
            lines.append(f'"{name}_node_{place}"[style="bold" shape="octagon" label="{label}"];')
        for place, dependencies in enumerate(self.dependencies):
            lines += [f'"{name}_node_{before}" -> "{name}_node_{place}";' for before in sorted(dependencies)]
        for body in self.bodies():
            lines += body._drawing(verbose=verbose)
        return [*lines, "}"]


class Executable:
    """A graph that can be launched again and again, but only one launch after the other.

    Args:
        graph: The graph, to which no node is added any more.
        number: The number by which profilers name the executable graph.

    Attributes:
        source: The graph with all nodes.
        disabled: The places of the nodes that launches skip.
        graph: The graph that is launched: the source, in which disabled nodes do nothing.
        number: The number by which profilers name the executable graph.
        host: The page-locked memory of the host that the nodes use.
        ready: The emulated time, in nanoseconds, at which the last launch is complete.
        preparations: The functions that prepare a launch, each by its owner.
        last: The last launch in the late schedule.
        checked: The graph, and the number of times that memory was unmapped, when the addresses of the nodes were
            mapped.
    """

    def __init__(self, graph: Graph, number: int) -> None:
        self.source = self.graph = graph
        self.disabled: Places = frozenset()
        self.number = number
        self.host = graph.host()
        self.ready = 0
        self.preparations: dict[object, Callable[[], object]] = {}
        self.last: Operation | None = None
        self.checked: tuple[Graph, int] | None = None
        # The lock is reentrant because a finalizer that runs meanwhile in this thread may launch the graph.
        self._lock = threading.RLock()

    def change(self, source: Graph, disabled: Places, graph: Graph) -> None:
        """Let the next launches do the work of another graph; the arguments are the attributes of these names.

        A launch that runs in another thread does all of the former work.
        """
        self.source, self.disabled, self.host, self.graph = source, disabled, graph.host(), graph

    def run(self) -> None:
        """Do the work of the nodes."""
        with self._lock:
            for node in self.graph.nodes:
                node.work()

    def complete(self, start: int) -> tuple[int, int]:
        """Return when a launch starts that may start at ``start``, and when the launch is complete."""
        start = max(start, self.ready)
        self.ready = self.graph.complete(start)
        return start, self.ready


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
