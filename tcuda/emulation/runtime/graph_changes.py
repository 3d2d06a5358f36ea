"""Changes of graphs: another array in the place of one array, other parameters, and nodes that launches skip."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tcuda._runtime.update_failures import NODE_TYPE_CHANGED, PARAMETERS_CHANGED, TOPOLOGY_CHANGED
from tcuda.emulation.runtime.conditionals import ConditionalNode
from tcuda.emulation.runtime.graphs import Graph, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from tcuda._runtime.protocol import Move

_SWITCHED = ("kernel", "memcpy", "memset")
"""The types of nodes that can be disabled."""


class Difference(NamedTuple):
    """Why a graph cannot give its parameters to an executable graph.

    Attributes:
        result: The ``cudaGraphExecUpdateResult``.
        place: The place of the node; -1 for the whole graph.
    """

    result: int
    place: int


def difference(graph: Graph, other: Graph, owner: Callable[[int], object]) -> Difference | None:
    """Return why ``other`` cannot give its parameters to an executable graph of ``graph``; None if it can.

    Args:
        graph: The graph.
        other: The other graph.
        owner: Returns the device of an address.
    """
    if graph.dependencies != other.dependencies:
        return Difference(TOPOLOGY_CHANGED, -1)
    for place, (node, later) in enumerate(zip(graph.nodes, other.nodes, strict=True)):
        if node.kind != later.kind:
            return Difference(NODE_TYPE_CHANGED, place)
        if tuple(node.devices) != tuple(later.devices) or _ends(node, owner) != _ends(later, owner):
            return Difference(PARAMETERS_CHANGED, place)
        if node.body is not None and later.body is not None:
            if node.name != later.name:  # an IF node and a WHILE node
                return Difference(PARAMETERS_CHANGED, place)
            inner = difference(node.body, later.body, owner)
            if inner is not None:
                return Difference(inner.result, place)
    return None


def _ends(node: Node, owner: Callable[[int], object]) -> object:
    """Return the devices and the kinds of the memory of a copy or a fill; None for other nodes."""
    if node.kind not in ("memcpy", "memset"):
        return None
    return [owner(address) for address in node.addresses], len(node.host), node.pageable


class MovedGraph:
    """A copy of a graph, in which the nodes work on another array.

    Args:
        graph: The graph.
        move: The addresses that move.

    Attributes:
        graph: The copy, whose other nodes are those of ``graph``.
        nodes: The number of nodes that are moved, also in bodies.
        doubtful: The first node that has another address of the allocation, in words; an empty text without one.
        conditionals: The conditional nodes, also in bodies, and their copies.
    """

    def __init__(self, graph: Graph, move: Move) -> None:
        self.nodes = 0
        self.doubtful = ""
        self.conditionals: list[tuple[ConditionalNode, ConditionalNode]] = []
        self._move = move
        self.graph = self._moved(graph, "")

    def _moved(self, graph: Graph, where: str) -> Graph:
        from tcuda.emulation.runtime.moves import Mover  # here, because the module needs NumPy

        nodes: list[Node] = []
        for place, node in enumerate(graph.nodes):
            if isinstance(node, ConditionalNode):
                made = node.with_body(self._moved(node.body, " of a body"))
                self.conditionals.append((node, made))
                nodes.append(made)
                continue
            mover = Mover(self._move)
            work, accesses = mover.moved(node.work), mover.moved(node.accesses)
            if mover.doubts:
                self.doubtful = self.doubtful or graph.described()[place].in_words(place) + where
            nodes.append(self._with(node, work, accesses) if mover.uses else node)
            self.nodes += mover.uses
        return graph.with_nodes(nodes)

    def _with(self, node: Node, work: Callable[[], object], accesses: object) -> Node:
        move = self._move
        made: Node = object.__new__(type(node))
        made.__dict__.update(node.__dict__)
        made.work, made.accesses = work, accesses  # type: ignore[assignment]  # a moved object is of the same type
        made.addresses = tuple(
            move.begin + move.offset if move.block_begin <= address < move.block_end else address
            for address in node.addresses
        )
        return made


def can_be_disabled(graph: Graph, place: int) -> bool:
    """Return whether CUDA lets launches skip the node at ``place``."""
    return 0 <= place < len(graph.nodes) and graph.nodes[place].kind in _SWITCHED


def without(graph: Graph, disabled: Container[int]) -> Graph:
    """Return ``graph`` with nodes that do nothing in the places that are disabled."""
    return graph.with_nodes([Node(node.name) if place in disabled else node for place, node in enumerate(graph.nodes)])
