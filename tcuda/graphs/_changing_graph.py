"""A captured graph that changes: another array, the parameters of another capture, and nodes that launches skip."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tcuda._base import log
from tcuda._base.arguments import a_kind, flag
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda.graphs._array_layout import move_between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from tcuda._backend.graphs import GraphLauncher
    from tcuda._process.captures import Capture
    from tcuda.memory._pools import PoolId

_SKIPPABLE = "kernel"
"""CUDA allows to skip copies and fills too. But with the driver 580.159 on an H200, neither the next node nor the end
of the launch waits for the nodes before a fill that is skipped."""

_HOW_TO_KEEP = "Make the graph with tcuda.CUDAGraph(keep_graph=True) before the capture."


class ChangingGraph:
    """The changes of a captured graph; :class:`tcuda.CUDAGraph` has the rest.

    A change counts for the next replays. Replays that the device has not done yet do the work that they were launched
    with.
    """

    _capture: Capture | None
    _captured: bool
    _keep_graph: bool
    _pool: PoolId | None
    _number: int  # of the capture, for the ledger
    _graph: int  # the cudaGraph_t with the present parameters; 0 if it is not kept
    _body_graphs: tuple[int, ...]  # of the conditional nodes of _graph
    _executable: int
    _origin: tuple[int, Any] | None  # the cudaGraph_t of which _executable was made, if it is another one than _graph,
    # and what its nodes refer to
    _launcher: GraphLauncher | None  # of _executable
    _replayed: bool  # otherwise than by _launcher
    _debug: bool
    _nodes: int
    _held: Sequence[int]
    _states: Sequence[Any]
    _events: Sequence[Any]
    _host_memory: Sequence[Any]

    if TYPE_CHECKING:

        def instantiate(self) -> None: ...
        def _forget(self) -> None: ...

    def replace(self, old: Any, new: Any) -> int:
        """Let the graph work on the array ``new`` where the graph has worked on the array ``old``.

        The next replays read and write ``new`` in the place of ``old``. Addresses inside of ``old``, such as those of
        views, become the corresponding addresses inside of ``new``. A replay after a replacement takes much less time
        than another capture. The graph no longer keeps the memory of ``old``, and keeps the memory of ``new``.

        The addresses are found in the parameters of kernels, also in structures, and in copies and fills, also those in
        the bodies of conditional nodes. Addresses in the memory of a device are not found, and neither are those that a
        library has encoded.

        Args:
            old: An array that the graph uses.
            new: An array with the shape, the dtype, the strides and the device of ``old``.

        Returns:
            The number of nodes that use the array.

        Raises:
            AcceleratorError: CUDA cannot change a node in this way (910). The error names the node.
            RuntimeError: The graph was not made with ``keep_graph=True``, the graph has captured nothing yet, the
                arrays differ in their layout, no node uses ``old``, or ``old`` is a part of an allocation and a node
                uses another part of it, which may reach ``old``.
            TypeError: ``old`` or ``new`` is not an array of a device.

        Example:
            >>> x, other = xp.zeros(3), xp.ones(3)
            >>> g = tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     y = x * 2
            >>> g.replace(x, other)
            1
            >>> g.replay()
            >>> y
            array([2., 2., 2.])
        """
        self._require_nodes("replace()", self._graph)
        move = move_between(old, new)
        replayed = self._was_replayed()
        # The graph keeps the new memory before the change and the old memory until after the change, so that an
        # exception of a signal handler leaves no node with memory that nobody keeps.
        fresh = ledger().hold([move.begin + move.offset], self._number)
        self._held = [*self._held, *fresh]
        moved = None
        try:
            moved = cuda.graphMove((self._graph, *self._body_graphs), self._executable, move)
        finally:
            before = self._held
            if moved is None or not moved.nodes or moved.doubtful:
                self._held = before[: len(before) - len(fresh)]
                ledger().release_holds(fresh, False)
            else:
                self._held = ledger().hold(moved.addresses, self._number)
                ledger().release_holds(before, replayed)
        if moved.doubtful:
            raise RuntimeError(
                f"replace(): old is a part of an allocation of {move.block_end - move.block_begin} bytes, and "
                f"{moved.doubtful} uses another part, through which it may reach old. Replace the array that has the "
                "whole allocation. The graph is unchanged."
            )
        if not moved.nodes:
            raise RuntimeError(
                f"replace(): no node of the graph has the address of old, {move.begin:#x}. Pass the array that the "
                "graph was captured with, or the array of the last replace(). The graph is unchanged."
            )
        moved_to = move.begin + move.offset
        log.debug("A graph of %d nodes uses %#x in the place of %#x.", self._nodes, moved_to, move.begin)
        return moved.nodes

    def update(self, other: Self) -> None:
        """Take over the work of another graph of the same shape (``cudaGraphExecUpdate``).

        Both graphs must have the same nodes with the same dependencies, as two captures of one function have. The
        parameters may differ: addresses, numbers, sizes, and the grids of kernels. An update takes less time than a
        capture and an instantiation. The graph owns the memory of ``other`` then, and gives its own memory back.
        ``other`` is then as after :meth:`reset`.

        Args:
            other: A captured graph, made with ``keep_graph=True``. The graph need not be instantiated.

        Raises:
            AcceleratorError: The shapes differ (910). The error names the node. Both graphs are unchanged.
            RuntimeError: A graph is being captured or has captured nothing, ``other`` was not made with
                ``keep_graph=True``, or the graphs draw random numbers of different generators.
            TypeError: ``other`` is not a :class:`tcuda.CUDAGraph`.

        Example:
            >>> x = xp.zeros(3)
            >>> g, later = tcuda.CUDAGraph(), tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     x += 1
            >>> with tcuda.graph(later):
            ...     x += 10
            >>> g.update(later)
            >>> g.replay()
            >>> x
            array([10., 10., 10.])
        """
        if not isinstance(other, ChangingGraph):
            raise TypeError(f"update() takes a tcuda.CUDAGraph; got {a_kind(other)}.")
        if other is self:
            raise RuntimeError("update() takes another graph; a graph cannot take over its own work.")
        self._require_captured("update()")
        other._require_nodes("update(): other", other._graph)
        if len(self._states) != len(other._states):
            raise RuntimeError(
                f"update() takes a graph that draws random numbers of as many generators: this graph has "
                f"{len(self._states)} and other has {len(other._states)}."
            )
        if not self._executable:
            self.instantiate()
        replayed = self._was_replayed()
        cuda.graphExecUpdate(self._executable, other._graph)
        for state, before in zip(other._states, self._states, strict=True):
            state.follow(before)
        self._take_work_of(other, replayed)
        log.debug("A graph of %d nodes has taken over the work of another graph.", self._nodes)

    def _take_work_of(self, other: Self, replayed: bool) -> None:
        """Own the work of ``other``, with which the executable graph was updated, and give the former work back."""
        pool, held, graph, kept = self._pool, self._held, self._graph, (self._events, self._host_memory)
        executable, other._executable = other._executable, 0
        self._pool, self._number, self._held = other._pool, other._number, other._held
        self._graph, self._body_graphs, self._nodes = other._graph, other._body_graphs, other._nodes
        self._states, self._events, self._host_memory = other._states, other._events, other._host_memory
        spare = other._origin
        other._forget()
        if graph and self._origin is None:
            self._origin = graph, kept
            graph = 0
        try:
            if executable:
                cuda.graphExecDestroy(executable)
            if spare is not None:
                cuda.graphDestroy(spare[0])
            if graph:
                cuda.graphDestroy(graph)
            if not (self._keep_graph or self._needs_nodes()):
                unused, self._graph = self._graph, 0
                cuda.graphDestroy(unused)
        finally:
            if pool is not None:
                ledger().release_graph(pool, held, replayed)

    def _forget_origin(self) -> None:
        """Destroy the graph of which the executable graph was made before there was an executable of ``_graph``."""
        origin, self._origin = self._origin, None
        if origin is not None:
            for state in self._states:
                state.follow(None)
            cuda.graphDestroy(origin[0])

    def set_node_enabled(self, node: int, enabled: bool) -> None:
        """Let the next replays do a node of the graph, or skip the node (``cudaGraphNodeSetEnabled``).

        The nodes that wait for a skipped node do not wait for longer. :meth:`instantiate` enables all nodes.

        Args:
            node: The place of the node, ``"index"`` in :meth:`get_graph_data`. The node must be a kernel.
            enabled: Whether replays do the node.

        Raises:
            IndexError: The graph has no such node.
            RuntimeError: The node is no kernel, the graph was not made with ``keep_graph=True``, or the graph has
                captured nothing yet.
            TypeError: ``node`` is not an integer, or ``enabled`` is not True or False.

        Example:
            >>> x = xp.zeros(3)
            >>> g = tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     x += 1
            ...     x += 10
            >>> g.set_node_enabled(0, False)
            >>> g.replay()
            >>> x
            array([10., 10., 10.])
        """
        switched = flag(enabled, "set_node_enabled(): enabled")
        place = self._place(node, "set_node_enabled()")
        shape = self._origin[0] if self._origin else self._graph
        found = cuda.graphNodes(shape)[place]
        if found.kind != _SKIPPABLE:
            raise RuntimeError(
                f"set_node_enabled(): {found.in_words(place)} is no kernel. Only kernels can be skipped, because the "
                "nodes after a skipped fill would not wait for the nodes before the fill."
            )
        cuda.graphNodeSetEnabled(self._executable, shape, place, switched)

    def is_node_enabled(self, node: int) -> bool:
        """Return whether the next replays do a node of the graph (``cudaGraphNodeGetEnabled``).

        Args:
            node: The place of the node, as in :meth:`set_node_enabled`.

        Raises:
            AcceleratorError: The node is neither a kernel nor a copy nor a fill (1).
            IndexError: The graph has no such node.
            RuntimeError: The graph was not made with ``keep_graph=True``, or the graph has captured nothing yet.
            TypeError: ``node`` is not an integer.

        Example:
            >>> g = tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     x = xp.zeros(3)
            >>> g.is_node_enabled(0)
            True
        """
        place = self._place(node, "is_node_enabled()")
        return cuda.graphNodeGetEnabled(self._executable, self._origin[0] if self._origin else self._graph, place)

    def _was_replayed(self) -> bool:
        return self._replayed or (self._launcher is not None and self._launcher.launched)

    def _needs_nodes(self) -> bool:
        """Return whether the graph keeps its nodes without ``keep_graph=True``: for the picture, or for the states."""
        return self._debug or bool(self._states)

    def _place(self, node: int, call: str) -> int:
        """Return the place of a node of the graph, which is instantiated if it is not."""
        place = operator.index(node)
        self._require_nodes(call, self._graph if self._keep_graph else 0)
        if not 0 <= place < self._nodes:
            raise IndexError(f"{call}: node is {place}, but the graph has {self._nodes} nodes.")
        if not self._executable:
            self.instantiate()
        return place

    def _require_captured(self, call: str) -> None:
        if self._capture is not None:
            raise RuntimeError(f"{call}: the graph is being captured. End the capture first.")
        if not self._captured:
            raise RuntimeError(f"{call}: the graph has captured nothing yet.")

    def _require_nodes(self, call: str, graph: int) -> None:
        self._require_captured(call)
        if not graph:
            raise RuntimeError(f"{call}: the graph has not kept its nodes. {_HOW_TO_KEEP}")


__all__ = ["ChangingGraph"]
