"""Conditional nodes: nodes of a graph whose body a launch runs, or repeats, while a flag on the device is not zero."""

from __future__ import annotations

import copy
import ctypes
import functools
import weakref
from typing import TYPE_CHECKING

from tcuda._runtime.protocol import Conditional
from tcuda.emulation.runtime import costs
from tcuda.emulation.runtime.accesses import READ, span
from tcuda.emulation.runtime.graphs import Graph, Node, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcuda.emulation.runtime.accesses import Access
    from tcuda.emulation.runtime.handles import Handles

_IN_BODIES = ("kernel", "memcpy", "memset", "empty", "child_graph", "conditional")
"""The types of nodes that a body may have ("Conditional Graph Nodes" in the CUDA C++ Programming Guide)."""


_FEWEST = 64
"""The fewest handles at which handles of nodes that are gone are looked for."""


class Condition:
    """The value of a conditional node, which each launch sets before the node runs.

    Attributes:
        value: Whether the value is not zero.
    """

    def __init__(self) -> None:
        self.value = False

    def setter(self, flag: int, size: int) -> Node:
        """Return a kernel that copies a flag of ``size`` bytes at the address ``flag`` to the value."""
        return Node(
            "tcuda_set_conditional",
            costs.kernel(size),
            functools.partial(self._set, flag, size),
            (flag,),
            size,
            [span(flag, size, READ, "flag")],
        )

    def _set(self, flag: int, size: int) -> None:
        self.value = any(ctypes.string_at(flag, size))


class ConditionalNode(Node):
    """A node that runs its body if a value is not zero.

    Args:
        condition: The value.
        body: The graph of the body.
        repeats: Whether the body is repeated until the value is zero.

    Attributes:
        condition: The value.
        body: The graph of the body.
        accesses_of_body: For each node of the body, the accesses of all its runs in the last launch; None unless a race
            detector watches.
    """

    body: Graph

    def __init__(self, condition: Condition, body: Graph, *, repeats: bool) -> None:
        super().__init__("while" if repeats else "if", work=self.run, kind="conditional")
        self.body = body
        self.accesses_of_body: list[dict[Access, None]] | None = None
        self.condition = condition
        self._repeats = repeats
        self._time_of_rounds: int | None = None

    def with_body(self, body: Graph) -> ConditionalNode:
        """Return a node with the same condition and another body."""
        made = copy.copy(self)
        made.body, made.work = body, made.run
        made.accesses_of_body = None
        return made

    def work_in(self, order: Order) -> Callable[[], object]:
        """Return a function that runs the body as often as the value says."""
        return functools.partial(self.run, order)

    def run(self, order: Order | None = None) -> None:
        """Run the body as often as the value says.

        Args:
            order: Gives the order of the nodes of the body; the order of the capture if None.
        """
        time = 0
        nodes = self.body.nodes
        while self.condition.value:
            for place in range(len(nodes)) if order is None else order(self.body.dependencies):
                (nodes[place].work if order is None else nodes[place].work_in(order))()
            if self.accesses_of_body is not None:
                self._note_accesses(self.accesses_of_body)
            time += self.body.complete(0)
            if not self._repeats:
                break
        self._time_of_rounds = time

    def complete(self, start: int) -> int:
        """Return when the rounds of the last run are complete, given that the first may start at ``start``.

        Before any run, which may be late, one round counts.
        """
        time = self._time_of_rounds
        return start + (self.body.complete(0) if time is None else time)

    def note_accesses(self) -> None:
        """Forget the accesses of the last launch, and note those of the next launch."""
        self.accesses_of_body = [{} for _ in self.body.nodes]
        note_accesses(self.body)

    def _note_accesses(self, noted: list[dict[Access, None]]) -> None:
        for known, node in zip(noted, self.body.nodes, strict=True):
            if callable(node.accesses):
                known.update(dict.fromkeys(node.accesses()))
            elif not known:
                known.update(dict.fromkeys(node.accesses))


class ConditionalNodes:
    """The conditional nodes that exist, by the handles of their values and of their bodies.

    The table keeps no node alive: a node lives as long as its graph. The weak references have no callbacks, because
    Python drops the exception of a signal handler that runs in a callback.

    Args:
        handles: Gives the handles.
    """

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._nodes: dict[int, weakref.ref[ConditionalNode]] = {}
        self._most = _FEWEST

    def add(self, node: ConditionalNode) -> Conditional:
        """Add a new node and return its handles."""
        if len(self._nodes) >= self._most:
            self._nodes = {handle: known for handle, known in dict(self._nodes).items() if known() is not None}
            self._most = max(_FEWEST, 2 * len(self._nodes))
        made = Conditional(self._handles.new(), self._handles.new())
        self._nodes[made.handle] = self._nodes[made.body] = weakref.ref(node)
        return made

    def replace(self, pairs: Iterable[tuple[ConditionalNode, ConditionalNode]]) -> None:
        """Let other nodes have the handles of nodes."""
        others = {id(node): weakref.ref(other) for node, other in pairs}
        for handle, known in dict(self._nodes).items() if others else ():
            other = others.get(id(known()))
            if other is not None:
                self._nodes[handle] = other

    def find(self, handle: int) -> ConditionalNode | None:
        """Return the node of a handle; None if there is no such node."""
        known = self._nodes.get(handle)
        return None if known is None else known()


def note_accesses(graph: Graph) -> None:
    """Let the conditional nodes of ``graph`` note what their bodies access in the next launch."""
    for node in graph.nodes:
        if isinstance(node, ConditionalNode):
            node.note_accesses()


def has_legal_bodies(graph: Graph, can_use: Callable[[int, int], bool]) -> bool:
    """Return whether CUDA instantiates ``graph``, as far as the bodies of its conditional nodes say.

    Args:
        graph: The graph.
        can_use: A function that returns whether a device can use the memory of a device at an address.
    """
    return all(
        _is_legal(node.body, node.devices, can_use) and has_legal_bodies(node.body, can_use)
        for node in graph.nodes
        if node.body is not None
    )


def _is_legal(body: Graph, devices: Sequence[int], can_use: Callable[[int, int], bool]) -> bool:
    """Return whether the nodes of ``body`` are of the types and on the device that CUDA allows."""
    return all(
        node.kind in _IN_BODIES
        and not node.meets
        and not node.pageable
        and tuple(node.devices) == tuple(devices)
        and (node.kind not in ("memcpy", "memset") or all(can_use(devices[0], address) for address in node.addresses))
        for node in body.nodes
    )
