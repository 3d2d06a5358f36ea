"""Captured work: what a capture has made, and what a program does with it until the work is released."""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

from tcuda._base import log
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._base.warnings import stacklevel
from tcuda._core import cleanup_on_error
from tcuda._process.asleep import COMMON_POOL, asleep, refuse_asleep
from tcuda._process.captures import capture_on, captures
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import GRAPH_AUTO_FREE_ON_LAUNCH
from tcuda.graphs._array_layout import move_between
from tcuda.graphs._body import explained
from tcuda.memory._pools import MemPool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._backend.graphs import GraphLauncher
    from tcuda._process.captures import Capture
    from tcuda.memory._pools import PoolId

_SKIPPABLE = "kernel"
"""CUDA can skip copies and fills, too. But with the driver 580.159 on an H200, neither the next node nor the end
of the launch waits for the nodes before a fill that is skipped."""


def _cannot_launch() -> int:
    """Return a failure, so that ``replay()`` goes the slow way: the work has no quick launch."""
    return Status.INVALID_VALUE


class CapturedWork:
    """The work that a capture has made, from the end of the capture to the release.

    A change counts for the next launches. Launches that the device has not done yet do the work that they were launched
    with.

    Args:
        pool: The pool of memory that the capture used.
        capture: The capture, which has ended. If the capture was dropped, the work is only the pool.

    Attributes:
        pool: The handle of the pool.
        device: The device on which the work is launched.
        graph: The ``cudaGraph_t`` with the present parameters; 0 if the graph is not kept.
        executable: The ``cudaGraphExec_t``; 0 if there is none yet.
        nodes: The number of nodes.
        keeps_lines: Whether the ``cudaGraph_t`` is kept for the lines of its nodes.
        states: The captured states of the generators that draw in the work.
        launch: Launches the work on the current stream and returns success. The function does nothing and returns a
            failure if a launch needs preparation.
    """

    keeps_lines = False

    def __init__(self, pool: PoolId, capture: Capture) -> None:
        self.pool, self.device = pool, capture.device
        self.graph, self.executable, self.nodes, self._held = capture.ended or (0, 0, 0, [])
        self._number, self._bodies = capture.number, tuple(capture.bodies)
        self.states: Sequence[Any] = tuple(capture.states.values())
        self._events, self._host_memory = capture.events, capture.host_memory
        # The cudaGraph_t of which the executable graph was made, if that is another graph, and what its nodes refer to.
        self._origin: tuple[int, Any] | None = None
        self._launcher: GraphLauncher | None = None
        self.launch: Callable[[], int] = _cannot_launch
        self._replayed = False  # otherwise than by the launcher
        self._is_released = False

    def pools(self) -> list[PoolId]:
        """Return the handles of all pools of memory that the work keeps, the pool of the capture first."""
        return list(dict.fromkeys([self.pool, *(used.id for used in self._events if isinstance(used, MemPool))]))

    def instantiate(self) -> None:
        """Make a ``cudaGraphExec_t`` of the ``cudaGraph_t`` in its present state.

        Raises:
            AcceleratorError: CUDA cannot instantiate the graph.
        """
        self._replayed = self._was_replayed()
        if self._bodies:  # CUDA allows only one executable of such a graph at any time
            self._set_executable(0)
        try:
            made = cuda.graphInstantiate(self.graph, GRAPH_AUTO_FREE_ON_LAUNCH)
        except AcceleratorError as error:
            raise explained(error, self._bodies) from None
        self._set_executable(made)
        origin, self._origin = self._origin, None
        if origin is not None:
            for state in self.states:
                state.follow(None)
            cuda.graphDestroy(origin[0])

    def _set_executable(self, executable: int) -> None:
        """Use another ``cudaGraphExec_t``, and destroy the one before."""
        self._launcher, self.launch = None, _cannot_launch
        before, self.executable = self.executable, executable
        if before:
            cuda.graphExecDestroy(before)

    def warn(self) -> None:
        """Warn of work that is empty, or that lacks the lines of its nodes."""
        if not self.nodes:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream.",
                stacklevel=stacklevel(),
            )
        elif self.keeps_lines and all(node.line is None for node in cuda.graphNodes(self.graph)):
            warnings.warn(
                "TCUDA_GRAPH_LINES=1 has recorded no line of this graph: a debugger, or a tool that measures coverage, "
                "uses sys.settrace(). Capture without the tool.",
                RuntimeWarning,
                stacklevel=stacklevel(),
            )

    @staticmethod
    def require_launchable(stream: int) -> None:
        """Refuse a launch on a stream that captures.

        Raises:
            RuntimeError: The stream captures.
        """
        if captures and capture_on(stream) is not None:
            raise RuntimeError(
                "Cannot prepare for replay during capturing stage: a graph cannot be replayed into another. "
                "Capture the functions themselves, or replay the graph on a stream that does not capture."
            )

    def launch_carefully(self, stream: int) -> None:
        """Launch the ``cudaGraphExec_t`` with all preparations. The device of the work must be current.

        Raises:
            AcceleratorError: CUDA refuses the launch.
        """
        if self._launcher is None and not self.states:
            self._launcher = backend.graph_launcher(self.executable)
            self.launch = self._launcher.launch
            _launchable.add(self)
        self._replayed = True
        for state in self.states:
            if status := state.prepare(self.executable):
                raise AcceleratorError(status, "cuGraphExecKernelNodeSetParams")
        cuda.graphLaunch(self.executable, stream)

    def _was_replayed(self) -> bool:
        return self._replayed or (self._launcher is not None and self._launcher.launched)

    def replace(self, old: Any, new: Any) -> int:
        """Work on the array ``new`` in the place of ``old``; see :meth:`tcuda.CUDAGraph.replace`."""
        move = move_between(old, new)
        replayed = self._was_replayed()
        # The work keeps the new memory before the change and the old memory until after the change, so that an
        # exception of a signal handler leaves no node with memory that nobody keeps.
        fresh = ledger().hold([move.begin + move.offset], self._number)
        self._held = [*self._held, *fresh]
        moved = None
        try:
            moved = cuda.graphMove((self.graph, *self._bodies), self.executable, move)
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
        log.debug("A graph of %d nodes uses %#x in the place of %#x.", self.nodes, moved_to, move.begin)
        return moved.nodes

    def require_generators_of(self, before: CapturedWork) -> None:
        """Require that this work draws random numbers of as many generators as the work ``before``.

        Raises:
            RuntimeError: The numbers of generators differ.
        """
        if len(before.states) != len(self.states):
            raise RuntimeError(
                f"update() takes a graph that draws random numbers of as many generators: this graph has "
                f"{len(before.states)} and other has {len(self.states)}."
            )

    def take_executable_of(self, before: CapturedWork) -> None:
        """Update the ``cudaGraphExec_t`` of ``before`` with the parameters of this work, and take it.

        The next step is the release of ``before``, which gets the executable graph of this work.

        Raises:
            AcceleratorError: The shapes of the graphs differ (910). Both works are unchanged.
        """
        # Each work notes its own launches, which may still use its memory, before the executable graphs are exchanged.
        self._replayed, before._replayed = self._was_replayed(), before._was_replayed()
        cuda.graphExecUpdate(before.executable, self.graph)
        for state, former in zip(self.states, before.states, strict=True):
            state.follow(former)
        self.device = before.device
        self.executable, before.executable = before.executable, self.executable
        self.launch, before.launch = before.launch, _cannot_launch
        self._launcher, before._launcher = before._launcher, None
        if before.graph and before._origin is None:
            before._origin = before.graph, (before._events, before._host_memory)
            before.graph = 0
        self._origin, before._origin = before._origin, self._origin
        log.debug("A graph of %d nodes has taken over the work of another graph.", self.nodes)

    def require_awake(self) -> None:
        """Refuse a launch that would use memory which is asleep.

        Raises:
            RuntimeError: The graph uses such memory.
        """
        if asleep:
            refuse_asleep(self._held)
        for index, pool in asleep:
            if pool == self.pool or (pool == COMMON_POOL and ledger().is_asleep(index, self.pool)):
                raise RuntimeError(
                    f"The pool {self.pool} of the graph is asleep on cuda:{index}, so a replay would use addresses "
                    "without memory. Wake the pool first, by tcuda.memory.wake() or by wake() of its MemPool."
                )

    def forget_nodes(self) -> None:
        """Destroy the ``cudaGraph_t``, which the ``cudaGraphExec_t`` does not need."""
        graph, self.graph = self.graph, 0
        cuda.graphDestroy(graph)

    def enable(self, place: int, enabled: bool) -> None:
        """Let the next launches do the node at ``place``, or skip the node.

        Raises:
            RuntimeError: The node is no kernel.
        """
        found = cuda.graphNodes(self._shape)[place]
        if found.kind != _SKIPPABLE:
            raise RuntimeError(
                f"set_node_enabled(): {found.in_words(place)} is no kernel. Only kernels can be skipped, because the "
                "nodes after a skipped fill would not wait for the nodes before the fill."
            )
        cuda.graphNodeSetEnabled(self.executable, self._shape, place, enabled)

    def is_enabled(self, place: int) -> bool:
        """Return whether the next launches do the node at ``place``.

        Raises:
            AcceleratorError: The node is neither a kernel nor a copy nor a fill (1).
        """
        return cuda.graphNodeGetEnabled(self.executable, self._shape, place)

    @property
    def _shape(self) -> int:
        """The ``cudaGraph_t`` of which the executable graph was made."""
        return self._origin[0] if self._origin else self.graph

    def _release(self) -> None:
        """Do the steps of the release that are left. Each step is noted before it is done, and is done only once."""
        self._replayed = self._was_replayed()
        self._set_executable(0)
        graph, self.graph = self.graph, 0
        if graph:
            cuda.graphDestroy(graph)
        origin, self._origin = self._origin, None
        if origin is not None:
            cuda.graphDestroy(origin[0])
        del origin
        self._events, self._host_memory = [], []  # only now, because the graphs referred to them
        if not self._is_released:
            self._is_released = True
            ledger().release_graph(self.pool, self._held, self._replayed)

    release = cleanup_on_error(_release, _release)
    """Destroy the graphs and give the memory back. A failed step stops no other step. A second call does nothing."""


_launchable: weakref.WeakSet[CapturedWork] = weakref.WeakSet()
"""The works with a quick launch. A quick launch does not check whether the process is a forked child."""


def _forget_in_child() -> None:
    for work in _launchable:
        work.launch = _cannot_launch


call_in_child(_forget_in_child)

__all__ = ["CapturedWork"]
