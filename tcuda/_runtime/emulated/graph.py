"""Graphs: captured operations, what each of them waits for, and how long they take together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

from tcuda._runtime.protocol import GraphContents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcuda._runtime.emulated.pools import PooledMemory
    from tcuda._runtime.emulated.timeline import Mark

Places: TypeAlias = frozenset[int]
"""Nodes of a graph, by their places in the order of the capture."""


def _nothing() -> None:
    pass


class Node:
    """One operation.

    Attributes:
        name: What it is called in a drawing of the graph.
        duration: The nanoseconds that it takes.
        work: Does to the memory what the operation does.
        addresses: The device memory that it reads and writes.
        nbytes: How much it moves.
    """

    def __init__(
        self,
        name: str,
        duration: int = 0,
        work: Callable[[], object] = _nothing,
        addresses: Iterable[int] = (),
        nbytes: int = 0,
    ) -> None:
        self.name = name
        self.duration = duration
        self.work = work
        self.addresses = tuple(addresses)
        self.nbytes = nbytes

    def complete(self, start: int) -> int:
        """Return when it is complete, given that it may start at ``start``."""
        return start + self.duration


class ExternalRecord(Node):
    """The record of an event that stands for this point of every launch."""

    def __init__(self, mark: Mark) -> None:
        super().__init__("event record")
        self._mark = mark

    def complete(self, start: int) -> int:
        """Return ``start``, which is the time of the event from now on."""
        self._mark.time, self._mark.capture = start, None
        return start


class ExternalWait(Node):
    """The wait for an event as it was recorded last before a launch."""

    def __init__(self, mark: Mark) -> None:
        super().__init__("event wait")
        self._mark = mark

    def complete(self, start: int) -> int:
        """Return ``start``, or the time of the event if that is later."""
        return max(start, self._mark.time or 0)


class Graph:
    """Nodes in the order of the capture, which is one of those in which they may run.

    Attributes:
        number: What tells it from others in a drawing.
        nodes: The nodes.
        dependencies: For each node those that it waits for, all of them before it.
        allocated: The memory that was allocated in the capture, by address. It lives as long as the graph, because
            every launch finds it at that address.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.nodes: list[Node] = []
        self.dependencies: list[Places] = []
        self.allocated: dict[int, PooledMemory] = {}

    def add(self, node: Node, dependencies: Places) -> int:
        """Add ``node`` and return its place."""
        self.nodes.append(node)
        self.dependencies.append(dependencies)
        return len(self.nodes) - 1

    def up_to(self, ends: Places) -> set[int]:
        """Return ``ends`` and all nodes that these wait for, directly or not."""
        found: set[int] = set()
        missing = list(ends)
        while missing:
            place = missing.pop()
            if place not in found:
                found.add(place)
                missing.extend(self.dependencies[place])
        return found

    def complete(self, start: int) -> int:
        """Return when all nodes are complete, each started as soon as those it waits for are."""
        ends: list[int] = []
        for node, dependencies in zip(self.nodes, self.dependencies, strict=True):
            ends.append(node.complete(max((ends[place] for place in dependencies), default=start)))
        return max(ends, default=start)

    def contents(self) -> GraphContents:
        """Return how many nodes there are, and which memory they work on."""
        addresses = dict.fromkeys(address for node in self.nodes for address in node.addresses)
        return GraphContents(len(self.nodes), list(addresses))

    def dot(self, *, verbose: bool) -> str:
        """Return the graph in the language of Graphviz, as CUDA writes it; if ``verbose``, with the memory of nodes."""
        name = f"graph_{self.number}"
        lines = ["digraph dot {", f"subgraph cluster_{self.number} {{", f'label="{name}" graph[style="dashed"];']
        for place, node in enumerate(self.nodes):
            texts = [str(place), node.name]
            if verbose:
                texts += [*map(hex, node.addresses), f"{node.nbytes} bytes"]
            label = "".join(f"{_escaped(text)}\\n" for text in texts)
            lines.append(f'"{name}_node_{place}"[style="bold" shape="octagon" label="{label}"];')
        for place, dependencies in enumerate(self.dependencies):
            lines += [f'"{name}_node_{before}" -> "{name}_node_{place}";' for before in sorted(dependencies)]
        return "\n".join([*lines, "}", "}", ""])


class Executable:
    """A graph that can be launched, again and again, but one launch after the other.

    Attributes:
        graph: The graph, which does not change any more.
        ready: The emulated time, in nanoseconds, at which its last launch is complete.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ready = 0
        # Reentrant, as the lock of the clock.
        self._lock = threading.RLock()

    def run(self) -> None:
        """Do what the nodes do."""
        with self._lock:
            for node in self.graph.nodes:
                node.work()

    def complete(self, start: int) -> tuple[int, int]:
        """Return when a launch starts that may do so at ``start``, and when it is complete."""
        start = max(start, self.ready)
        self.ready = self.graph.complete(start)
        return start, self.ready


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
