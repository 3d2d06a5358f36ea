"""A CUDA graph: work that a program captures once and launches many times."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from tcuda._base import log
from tcuda._base.arguments import flag, pool_id, text
from tcuda._base.copying import refusing
from tcuda._base.errors import AcceleratorError
from tcuda._base.scope import require_depth, undone_by
from tcuda._base.statuses import Status
from tcuda._base.warnings import stacklevel
from tcuda._device import device
from tcuda._process.captures import Capture, capture_on, captures
from tcuda._process.exit import finalizer
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import (
    CAPTURE_GLOBAL,
    CAPTURE_RELAXED,
    CAPTURE_THREAD_LOCAL,
    CONDITIONAL_IF,
    GRAPH_AUTO_FREE_ON_LAUNCH,
    GRAPH_DOT_VERBOSE,
    STREAM_LEGACY,
)
from tcuda.graphs._body import BOOL, give_streams_back
from tcuda.graphs._changing_graph import ChangingGraph
from tcuda.graphs._end import with_unjoined_streams
from tcuda.graphs._graph_data import graph_data
from tcuda.graphs._open_bodies import OpenBodies
from tcuda.memory._pools import MemPool
from tcuda.random import Generator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Self

    from tcuda._backend.graphs import GraphLauncher
    from tcuda.memory._pools import PoolId

_beginning = threading.RLock()
"""The lock that is held while a capture begins, so that each capture sees all captures that began before.

The lock is reentrant, because a finalizer or a signal handler that runs meanwhile may begin a capture too.
"""

_WHAT_A_BODY_MAY_CONTAIN = (
    "The body of a conditional node may contain only kernels, copies, fills and conditional nodes, all on the device "
    "of the node. Copies must use neither pageable memory of the host nor memory that the device cannot access. Events "
    "with external=True, memory of cudaMallocAsync and collectives are not allowed."
)

_MODES = {"global": CAPTURE_GLOBAL, "thread_local": CAPTURE_THREAD_LOCAL, "relaxed": CAPTURE_RELAXED}


def _cannot_launch() -> int:
    """Return a failure, so that ``replay()`` goes the slow way: the graph has no quick launch."""
    return Status.INVALID_VALUE


class CUDAGraph(ChangingGraph):
    """Captured work of one or more streams, which a program launches as a whole (``torch.cuda.CUDAGraph``).

    :class:`tcuda.graph` captures work into a ``CUDAGraph``. Memory that is allocated on the capturing streams comes
    from a pool of the graph, and keeps its address until the graph is reset or deleted. So every replay works on the
    same memory, and writes the results to the arrays that the capture made. The graph also keeps memory from before the
    capture that the graph reads or writes, even if the arrays in that memory die.

    Each replay draws new random numbers: the numbers that the generator would give if the captured functions were
    called instead of replayed.

    Args:
        keep_graph: Whether to keep the ``cudaGraph_t`` for :meth:`raw_cuda_graph`. The ``cudaGraphExec_t`` is then made
            by :meth:`instantiate` or the first replay, and not at the end of the capture.

    Raises:
        TypeError: ``keep_graph`` is not True or False.

    Example:
        >>> x = xp.zeros(3)
        >>> g = tcuda.CUDAGraph()
        >>> with tcuda.graph(g):
        ...     x += 1
        >>> for _ in range(5):
        ...     g.replay()
        >>> x
        array([5., 5., 5.])
    """

    # The state of a graph that captured nothing. Most of it is here, because a new graph then takes less time.
    _keep_graph: bool
    _debug = False
    _capture: Capture | None = None
    _beginning = False  # whether capture_begin() has begun and not ended
    _ending = False  # whether capture_end() has begun and not ended
    _bodies: OpenBodies | None = None  # None before the first body
    _pool: PoolId | None = None
    _device = -1
    _number = 0
    _graph = 0
    _body_graphs: tuple[int, ...] = ()
    _executable = 0
    _origin: tuple[int, Any] | None = None
    _nodes = 0
    _captured = False
    _replayed = False
    _held: Sequence[int] = ()
    _states: Sequence[Any] = ()
    _events: Sequence[Any] = ()
    _host_memory: Sequence[Any] = ()
    _launcher: GraphLauncher | None = None
    _launch: Callable[[], int] = staticmethod(_cannot_launch)

    # __new__ takes the arguments, as in torch: a subclass may have an __init__ with other arguments, and need not call
    # CUDAGraph.__init__.
    def __new__(cls, keep_graph: bool = False) -> Self:
        self = object.__new__(cls)
        self._keep_graph = flag(keep_graph, "keep_graph")
        return self

    __reduce__ = refusing(
        "copy or pickle",
        "both would own the same CUDA graph and its memory. Capture the work again into another CUDAGraph.",
    )

    def _forget(self) -> None:
        """Put the graph back into the state of a graph that captured nothing."""
        self._pool = None
        self._device = -1
        self._graph = self._executable = self._nodes = self._number = 0
        self._captured = self._replayed = False
        self._body_graphs = self._held = self._states = self._events = self._host_memory = ()
        self._origin = None
        self._launcher, self._launch = None, _cannot_launch

    # Capturing

    def _undo_begin(self) -> None:
        """Undo the changes of a :meth:`capture_begin` that raised."""
        capture = self._capture
        if self._beginning and capture is not None:
            if capture.number and ledger().has_capture(capture.number):
                self._abandon_capture()
            else:
                # Without the number, the stream captures for somebody else, or not at all.
                if capture.number and cuda.streamGetCaptureInfo(capture.stream)[1] == capture.number:
                    _discard_capture(capture.stream)
                self._capture = None
                self._forget()
        self._beginning = False

    @undone_by(_undo_begin)
    def capture_begin(
        self,
        pool: PoolId | MemPool | None = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Begin to capture the work of the current stream (``cudaStreamBeginCapture``).

        :class:`tcuda.graph` calls this method, and ends the capture if an error occurs.

        Args:
            pool: The pool whose memory to use: a :class:`MemPool`, or the result of :func:`graph_pool_handle` or of
                :meth:`pool` of another graph; a new pool if None. Graphs that share a pool must be replayed in the
                order of their captures, and must not run at the same time.
            capture_error_mode: The threads that must not wait for streams during the capture: all threads
                (``"global"``), this thread (``"thread_local"``), or no thread (``"relaxed"``). In every mode, all
                threads may allocate memory.
            check_input_liveness: Accepted for compatibility with torch, and ignored: the graph always keeps the memory
                that the graph reads.

        Raises:
            RuntimeError: The graph has captured already, the current stream is a default stream, or
                ``capture_error_mode`` is unknown.
            TypeError: ``pool`` is neither a pool nor the handle of a pool, or ``capture_error_mode`` is not a ``str``.
            AcceleratorError: The current stream is capturing.

        Example:
            >>> x = xp.zeros(3)
            >>> g = tcuda.CUDAGraph()
            >>> with tcuda.stream(tcuda.Stream()):
            ...     g.capture_begin()
            ...     x += 1
            ...     g.capture_end()
            >>> g.replay()
            >>> x
            array([1., 1., 1.])
        """
        require_depth()
        if self._captured or self._capture is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance, "
                "or call reset() first."
            )
        try:
            mode = _MODES[capture_error_mode]
        except (KeyError, TypeError):
            text(capture_error_mode, "capture_begin(): capture_error_mode")
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            ) from None
        memory = ledger()
        shared = None if pool is None else _checked_pool(pool)
        stream = backend.current_stream().ptr
        if stream in (0, STREAM_LEGACY, backend.default_stream.ptr):
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.) Make one current: with tcuda.stream(tcuda.Stream()), or use tcuda.graph."
            )
        index = cuda.getDevice()
        used = shared or (memory.next_pool(), 0)
        with _beginning:
            if not captures:  # the preparation would invalidate those
                backend.prepare_capture()
            # The graph notes the capture before CUDA begins the capture, because a signal handler may raise in between.
            self._beginning, self._pool, self._device = True, used, index
            self._capture = capture = Capture(self, stream, index, 0, mode)
            cuda.beginGraph(memory, used, capture)
            captures.append(capture)
        self._beginning = False
        log.debug("A capture begins on stream %#x of device %d.", stream, index)

    def _undo_end(self) -> None:
        """Drop the capture that :meth:`capture_end` failed to end."""
        if self._ending:
            self._abandon_capture()
        self._ending = False

    @undone_by(_undo_end)
    def capture_end(self) -> None:
        """End the capture (``cudaStreamEndCapture``), and make the graph ready for :meth:`replay`.

        If the call fails, the graph is as it was before :meth:`capture_begin`, and the stream no longer captures.

        Raises:
            RuntimeError: The current stream is not the one on which the capture was begun.
            AcceleratorError: There is no capture (401), or a call has invalidated it (901), or a stream that took
                part was not joined again (904).

        Example:
            >>> x = xp.zeros(2)
            >>> g = tcuda.CUDAGraph()
            >>> with tcuda.stream(tcuda.Stream()):
            ...     g.capture_begin()
            ...     x += 1
            ...     g.capture_end()
            >>> g.replay()
            >>> x
            array([1., 1.])
        """
        capture = self._capture
        if capture is None:
            raise AcceleratorError(Status.ILLEGAL_STATE, "CUDAGraph.capture_end()")
        if backend.current_stream().ptr != capture.stream:
            raise RuntimeError(
                "Capture must end on the same stream it began on. It began on the stream "
                f"{capture.stream:#x}, and {backend.current_stream().ptr:#x} is current."
                + (
                    " A begin_capture_to_if_node() has no end_capture_to_conditional_node() yet."
                    if self._bodies
                    else ""
                )
            )
        self._ending = True
        if capture.is_broken or self._bodies:
            raise AcceleratorError(
                Status.STREAM_CAPTURE_INVALIDATED,
                "CUDAGraph.capture_end(): the capture of the body of a conditional node has not come to its end",
            )
        keep = self._keep_graph or self._debug or bool(capture.states)  # debug_dump() and the states need the nodes
        flags = None if self._keep_graph else GRAPH_AUTO_FREE_ON_LAUNCH
        try:
            cuda.endGraph(ledger(), capture, flags, keep)
        except AcceleratorError as error:
            raise _explained(with_unjoined_streams(error, capture.stream), capture.bodies) from None
        self._take_over(capture)
        self._events, self._host_memory = capture.events, capture.host_memory
        if capture.states:
            self._states = tuple(capture.states.values())
        self._captured = True
        self._leave_capture(capture)
        self._ending = False
        nodes = self._nodes
        log.debug("The capture on stream %#x ends with %d nodes.", capture.stream, nodes)
        if not nodes:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream.",
                stacklevel=stacklevel(),
            )

    def _abandon_capture(self) -> None:
        """End the capture and drop the captured work."""
        capture = self._capture
        if capture is not None:
            if self._bodies is not None:
                self._bodies.abandon()
            _discard_capture(capture.stream, has_lost_body=capture.has_lost_body)
            ledger().end_capture(capture.number)
            self._take_over(capture)
            self._leave_capture(capture)
            self._release()

    def _take_over(self, capture: Capture) -> None:
        """Take over what the end of ``capture`` has made."""
        if capture.ended is not None:
            self._graph, self._executable, self._nodes, self._held = capture.ended
            self._number, self._body_graphs = capture.number, tuple(capture.bodies)

    def _leave_capture(self, capture: Capture) -> None:
        """Forget ``capture``, which has ended. A second call does nothing."""
        if capture in captures:
            captures.remove(capture)
        self._capture = None
        give_streams_back(capture)

    # Conditional nodes

    def begin_capture_to_if_node(self, scalar_cuda_pred_tensor: Any) -> None:
        """Capture the work that follows into the body of an IF node (``torch.cuda.CUDAGraph``).

        A replay reads the flag ``scalar_cuda_pred_tensor`` at this point of its work, and does the work of the body
        only if the flag is True. The body ends with :meth:`end_capture_to_conditional_node`. Bodies may be nested. In
        the body, another stream is current, and all work must be on that stream or on streams that wait for it.

        CUDA allows only kernels, copies, fills and conditional nodes in a body, all of them on one device, and copies
        only between memory of devices and page-locked memory. Random numbers cannot be drawn in a body. An array that
        the body makes has undefined contents until the body runs.

        Args:
            scalar_cuda_pred_tensor: The flag: an array with one bool on the current device. The graph keeps the memory.

        Raises:
            AcceleratorError: A call has invalidated the capture (901).
            RuntimeError: The graph is not being captured on the current stream, or the flag is not one bool on the
                current device.
            TypeError: ``scalar_cuda_pred_tensor`` is not an array of a device.

        Example:
            >>> x, flag = xp.zeros(3), xp.zeros((), bool)
            >>> g = tcuda.CUDAGraph()
            >>> with tcuda.graph(g):
            ...     g.begin_capture_to_if_node(flag)
            ...     x += 1
            ...     g.end_capture_to_conditional_node()
            >>> for value in (True, False, True):
            ...     flag.fill(value)
            ...     g.replay()
            >>> x
            array([2., 2., 2.])
        """
        call = "CUDAGraph.begin_capture_to_if_node()"
        self._begin_body(CONDITIONAL_IF, scalar_cuda_pred_tensor, BOOL, call)

    def end_capture_to_conditional_node(self) -> None:
        """End the body of a conditional node (``torch.cuda.CUDAGraph.end_capture_to_conditional_node``).

        The work that follows is captured after the node, on the stream of :meth:`begin_capture_to_if_node`.

        Raises:
            AcceleratorError: A call has invalidated the capture of the body (901), or a stream that took part in the
                body was not joined again (904). The graph cannot be captured then, and :meth:`capture_end` fails.
            RuntimeError: No body is being captured, or the current stream is not the stream of the body.

        Example:
            >>> flag = xp.ones((), bool)
            >>> g = tcuda.CUDAGraph()
            >>> with tcuda.graph(g):
            ...     x = xp.zeros(3)
            ...     g.begin_capture_to_if_node(flag)
            ...     x += 1
            ...     g.end_capture_to_conditional_node()
            ...     x *= 2  # this work is not in the body
            >>> g.replay()
            >>> x
            array([2., 2., 2.])
        """
        self._end_body()

    def _begin_body(self, kind: int, flag: Any, kinds: Mapping[str, int], call: str) -> None:
        """Add a conditional node, and begin to capture its body; see :meth:`OpenBodies.begin`."""
        if self._captured:
            raise RuntimeError(
                f"{call}: This CUDAGraph instance already owns a captured graph. Begin the body before capture_end()."
            )
        if self._bodies is None:
            self._bodies = OpenBodies()
        self._bodies.begin(self._capture, kind, flag, kinds, call)

    def _end_body(self) -> None:
        """End the capture of the innermost body."""
        (self._bodies or OpenBodies()).end()

    def _abandon_body(self) -> None:
        """End the capture of the innermost body in any state. The capture of the graph then fails at its end."""
        if self._capture is not None:
            self._capture.is_broken = True
        if self._bodies is not None:
            self._bodies.abandon_innermost()

    def _new_executable(self) -> int:
        """Return a ``cudaGraphExec_t`` of the graph."""
        try:
            return cuda.graphInstantiate(self._graph, GRAPH_AUTO_FREE_ON_LAUNCH)
        except AcceleratorError as error:
            raise _explained(error, self._body_graphs) from None

    @staticmethod
    def get_currently_capturing_graph() -> CUDAGraph:
        """Return the graph that the current stream captures into (``torch.cuda.CUDAGraph``).

        Raises:
            RuntimeError: The current stream does not capture, or tcuda did not begin the capture.

        Example:
            >>> x, graph = xp.zeros(3), tcuda.CUDAGraph()
            >>> with tcuda.graph(graph):
            ...     x += 1
            ...     found = tcuda.CUDAGraph.get_currently_capturing_graph()
            >>> found is graph
            True
        """
        capture = capture_on(backend.current_stream().ptr)
        graph: CUDAGraph | None = None if capture is None else capture.graph
        if graph is None:
            raise RuntimeError("The current stream is not currently capturing into a tcuda.CUDAGraph.")
        return graph

    def register_generator_state(self, Generator: Generator) -> None:  # noqa: N803  # torch's name for it
        """Accept a generator that will draw in the capture (``torch.cuda.CUDAGraph.register_generator_state``).

        torch demands this call for each generator that is not a default generator. In tcuda, the call does nothing: any
        generator may draw in a capture.

        Args:
            Generator: The generator.

        Raises:
            TypeError: ``Generator`` is not a generator.

        Example:
            >>> generator, graph = tcuda.Generator().manual_seed(42), tcuda.CUDAGraph()
            >>> graph.register_generator_state(generator)  # torch demands the call
            >>> with tcuda.graph(graph):
            ...     drawn = generator.random_sample(4)
            >>> graph.replay()
            >>> first = drawn.copy()
            >>> graph.replay()
            >>> bool((first == drawn).any())  # each replay draws new numbers
            False
        """
        if not isinstance(Generator, _Generator):
            raise TypeError(f"expected a Generator, but got {type(Generator).__name__}")

    # Replaying

    def instantiate(self) -> None:
        """Make a ``cudaGraphExec_t`` of the ``cudaGraph_t`` in its present state (``cudaGraphInstantiate``).

        Raises:
            RuntimeError: The graph was not made with ``keep_graph=True``, or the graph has captured nothing yet.

        Example:
            >>> x = xp.zeros(3)
            >>> g = tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     x += 1
            >>> handle = g.raw_cuda_graph()  # other libraries may change the graph
            >>> g.instantiate()
            >>> g.replay()
            >>> x
            array([1., 1., 1.])
        """
        if not self._keep_graph:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        if not self._captured:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        self._replayed = self._was_replayed()
        if self._body_graphs:  # CUDA allows only one executable of such a graph at any time
            self._destroy_executable()
        made = self._new_executable()
        self._launcher, self._launch = None, _cannot_launch
        before, self._executable = self._executable, made
        if before:
            cuda.graphExecDestroy(before)
        self._forget_origin()

    def _destroy_executable(self) -> None:
        before, self._executable = self._executable, 0
        self._launcher, self._launch = None, _cannot_launch
        if before:
            cuda.graphExecDestroy(before)

    def replay(self) -> None:
        """Launch the captured work (``cudaGraphLaunch``).

        The work runs on the current stream of the device of the capture.

        Raises:
            RuntimeError: The graph has captured nothing yet, or the current stream is capturing.

        Example:
            >>> x = xp.zeros(2)
            >>> g = tcuda.CUDAGraph()
            >>> with tcuda.graph(g):
            ...     x += 1
            >>> for _ in range(3):
            ...     g.replay()
            >>> x
            array([3., 3.])
        """
        if self._launch():
            self._replay_carefully()

    def _find_launcher(self) -> None:
        """Choose the quick launch if a replay needs no preparation. The device of the capture must be current."""
        if self._launcher is None and not self._states:
            self._launcher = backend.graph_launcher(self._executable)
            self._launch = self._launcher.launch
            _launchable.add(self)

    def _replay_carefully(self) -> None:
        if not self._captured:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        with device(self._device):
            stream = backend.current_stream().ptr
            if captures and capture_on(stream) is not None:
                raise RuntimeError(
                    "Cannot prepare for replay during capturing stage: a graph cannot be replayed into another. "
                    "Capture the functions themselves, or replay the graph on a stream that does not capture."
                )
            if not self._executable:
                self.instantiate()
            self._find_launcher()
            self._replayed = True
            for state in self._states:
                if status := state.prepare(self._executable):
                    raise AcceleratorError(status, "cuGraphExecKernelNodeSetParams")
            cuda.graphLaunch(self._executable, stream)

    def reset(self) -> None:
        """Delete the captured work and give the memory back. The graph can then capture again.

        If the graph is capturing, the call ends the capture in any state, and drops what was captured so far.

        The call does not wait for the device, which may be running the graph. The memory goes back when the device has
        done the work that it has now: at the next allocation, or in :func:`empty_cache`. The memory of arrays that are
        still alive goes back later: when an allocation needs the memory, or in :func:`empty_cache`. The allocator keeps
        up to 2 MiB of one graph for the next capture.

        Example:
            >>> x = xp.zeros(3)
            >>> g = tcuda.CUDAGraph()
            >>> with tcuda.graph(g):
            ...     x += 1
            >>> g.reset()
            >>> with tcuda.graph(g):  # the graph captures other work
            ...     x -= 1
            >>> g.replay()
            >>> x
            array([-1., -1., -1.])
        """
        self._abandon_capture()  # does nothing if the graph is not capturing
        if self._captured:
            self._release()

    def _release(self) -> None:
        pool, held = self._pool, self._held
        replayed = self._was_replayed()
        graph, executable, events_and_memory = self._graph, self._executable, (self._events, self._host_memory)
        origin = self._origin
        self._forget()
        try:
            if executable:
                cuda.graphExecDestroy(executable)
        finally:  # the next steps are done even if this step fails
            try:
                if graph:
                    cuda.graphDestroy(graph)
                if origin is not None:
                    cuda.graphDestroy(origin[0])
            finally:
                del origin
                del events_and_memory  # only now, because the graph referred to them
                if pool is not None:
                    ledger().release_graph(pool, held, replayed)

    def __repr__(self) -> str:
        if getattr(self, "_capture", None) is not None:
            state = f"capturing on device {self._device}"
        elif getattr(self, "_captured", False):  # a subclass may not call CUDAGraph.__new__
            count = "1 node" if self._nodes == 1 else f"{self._nodes} nodes"
            state = f"{count} on device {self._device}, pool {self._pool}"
        else:
            state = "nothing captured"
        return f"<tcuda.CUDAGraph: {state}>"

    def _repr_html_(self) -> str:
        """Return a picture of the graph if the nodes are kept and Graphviz is there, or else a line of text."""
        # These imports are here, because few programs need the modules.
        import tempfile
        from pathlib import Path

        from tcuda._viz import graphs
        from tcuda._viz.shared import notebook

        if not (getattr(self, "_captured", False) and self._graph):
            hint = "" if not getattr(self, "_captured", False) else "\nA picture needs CUDAGraph(keep_graph=True)."
            return notebook.preformatted(f"{self!r}{hint}")
        if not graphs.is_possible():
            return notebook.preformatted(f"{self!r}\nA picture needs the program dot of Graphviz.")
        with tempfile.TemporaryDirectory(prefix="tcuda-graph-") as folder:
            file = Path(folder, "graph.dot")
            cuda.graphDebugDotPrint(self._graph, str(file), 0)
            return graphs.svg(file.read_bytes())

    __del__ = finalizer(reset)

    # Looking inside

    def pool(self) -> PoolId:
        """Return the handle of the graph's pool of memory, which other graphs may share.

        Raises:
            RuntimeError: The graph has captured nothing yet.

        Example:
            >>> x = xp.ones(1000)
            >>> first, second = tcuda.CUDAGraph(), tcuda.CUDAGraph()
            >>> with tcuda.graph(first):
            ...     y = x * 2
            >>> with tcuda.graph(second, pool=first.pool()):  # both graphs use one pool of memory
            ...     z = y + 1
            >>> first.replay()
            >>> second.replay()
            >>> float(z.sum())
            3000.0
        """
        if not self._captured or self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def pools(self) -> list[PoolId]:
        """Return the handles of all pools of memory that the graph keeps: that of :meth:`pool` first.

        The others are those that blocks of :func:`use_mem_pool` used during the capture.

        Raises:
            RuntimeError: The graph has captured nothing yet.

        Example:
            >>> mine, g = tcuda.MemPool(), tcuda.CUDAGraph()
            >>> with tcuda.graph(g), tcuda.use_mem_pool(mine):
            ...     x = xp.ones(1000)
            >>> g.pools() == [g.pool(), mine.id]
            True
        """
        return list(dict.fromkeys([self.pool(), *(used.id for used in self._events if isinstance(used, MemPool))]))

    def raw_cuda_graph(self) -> int:
        """Return the ``cudaGraph_t``.

        Raises:
            RuntimeError: The graph was not made with ``keep_graph=True``, or the graph has captured nothing yet.

        Example:
            >>> x = xp.zeros(2)
            >>> g = tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     x += 1
            >>> g.raw_cuda_graph() != 0  # a cudaGraph_t
            True
        """
        if not self._keep_graph:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true"
            )
        if not self._captured:
            raise RuntimeError("You cannot access the raw cudaGraph_t instance until capture_end() has been called")
        return self._graph

    def raw_cuda_graph_exec(self) -> int:
        """Return the ``cudaGraphExec_t``, which :meth:`instantiate` and :meth:`reset` destroy.

        A launch of the ``cudaGraphExec_t`` without :meth:`replay` draws the random numbers of the last replay again.

        Raises:
            RuntimeError: The ``cudaGraphExec_t`` was not made yet.

        Example:
            >>> x = xp.zeros(2)
            >>> g = tcuda.CUDAGraph()
            >>> with tcuda.graph(g):
            ...     x += 1
            >>> g.raw_cuda_graph_exec() != 0  # a cudaGraphExec_t
            True
        """
        if not self._executable:
            raise RuntimeError(
                "You cannot access the raw cudaGraphExec_t instance until instantiate() has been called"
                if self._keep_graph
                else "You cannot access the raw cudaGraphExec_t instance until capture_end() has been called"
            )
        return self._executable

    def get_graph_data(self) -> dict[str, Any]:
        """Return the nodes of the graph and their dependencies (``torch.cuda.CUDAGraph.get_graph_data``).

        The numbers are those by which profilers that use CUPTI name the graph and its nodes. With a driver that is
        older than that of CUDA 13.1, which has no such numbers, all numbers are 0. The nodes of child graphs and of the
        bodies of conditional nodes are left out, as in torch.

        Returns:
            A dictionary with ``"exec_graph_id"``, the number of the ``cudaGraphExec_t``, and ``"nodes"``, a list with a
            dictionary for each node:

            * ``"index"``: the place in the list.
            * ``"node_type"``: ``"kernel"``, ``"memcpy"``, ``"memset"``, ``"host"``, ``"child_graph"``, ``"empty"``,
              ``"wait_event"``, ``"event_record"``, ``"mem_alloc"``, ``"mem_free"`` or ``"conditional"``.
            * ``"tools_id"``: ``"graph_id"`` in the upper and ``"node_id"`` in the lower 32 bits.
            * ``"graph_id"``: the number of the ``cudaGraphExec_t``.
            * ``"node_id"``: the number of the node in its graph.
            * ``"kernel_name"``: the name of the kernel; None for other nodes.
            * ``"event_ptr"``: the ``cudaEvent_t`` that the node records or waits for; 0 for other nodes.
            * ``"dependencies"`` and ``"dependents"``: the places of the nodes that the node waits for, and of the nodes
              that wait for the node.

        Raises:
            RuntimeError: The graph was not made with ``keep_graph=True``, has captured nothing yet, or has no
                ``cudaGraphExec_t`` yet.

        Example:
            >>> x = xp.zeros(3)
            >>> g = tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     x += 1
            ...     x *= 2
            >>> g.instantiate()
            >>> [(node["node_type"], node["dependencies"]) for node in g.get_graph_data()["nodes"]]
            [('kernel', []), ('kernel', [0])]
        """
        return graph_data(self.raw_cuda_graph(), self.raw_cuda_graph_exec())

    def enable_debug_mode(self) -> None:
        """Keep the nodes of the next capture for :meth:`debug_dump`.

        Example:
            >>> g = tcuda.CUDAGraph()
            >>> g.enable_debug_mode()  # before the capture
            >>> with tcuda.graph(g):
            ...     y = xp.ones(3)
        """
        self._debug = True

    def debug_dump(self, debug_path: str | os.PathLike[str], *, verbose: bool = True) -> None:
        """Write the graph to a file in the DOT language (``cudaGraphDebugDotPrint``).

        ``tcuda graph-viz`` draws the file.

        Args:
            debug_path: The path of the file.
            verbose: Whether the file has all that CUDA knows of each node, such as the arguments of kernels.

        Raises:
            RuntimeError: The graph was neither captured after :meth:`enable_debug_mode` nor made with
                ``keep_graph=True``.
            TypeError: ``debug_path`` is not a path.
            ValueError: ``debug_path`` has a null character.
            AcceleratorError: The file cannot be written.

        Example:
            >>> import os, tempfile
            >>> g = tcuda.CUDAGraph()
            >>> g.enable_debug_mode()
            >>> with tcuda.graph(g):
            ...     y = xp.ones(3)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     g.debug_dump(os.path.join(folder, "graph.dot"))
            ...     os.listdir(folder)
            ['graph.dot']
        """
        if not self._graph:
            raise RuntimeError(
                "There is no graph to dump: call enable_debug_mode() before the capture, or make the graph with "
                "keep_graph=True."
            )
        cuda.graphDebugDotPrint(self._graph, _checked_path(debug_path), GRAPH_DOT_VERBOSE if verbose else 0)


_Generator = Generator  # because a parameter of register_generator_state() has the name Generator, as in torch


def _explained(error: AcceleratorError, bodies: object) -> AcceleratorError:
    """Return an error that says what ``bodies`` may contain, if CUDA does not instantiate a graph because of them."""
    if not bodies or error.error_code != Status.INVALID_VALUE:
        return error
    return AcceleratorError(error.error_code, error.call, _WHAT_A_BODY_MAY_CONTAIN)


def _checked_pool(pool: Any) -> PoolId:
    """Return the handle of a pool.

    Raises:
        TypeError: ``pool`` is neither a pool nor the handle of a pool, or is ``(0, 0)``.
    """
    if isinstance(pool, MemPool):
        pool._open_on(cuda.getDevice())
        return pool.id
    if pool_id(pool, "capture_begin(): pool") == (0, 0):
        raise TypeError("capture_begin(): pool is (0, 0), which names no separate pool; pass None for a new pool.")
    return pool  # type: ignore[no-any-return]


def _checked_path(path: Any) -> str:
    """Return ``path`` as a ``str`` that C can read.

    Raises:
        TypeError: ``path`` is not a path.
        ValueError: ``path`` has a null character.
    """
    checked = os.fsdecode(path)
    if b"\0" in os.fsencode(checked):
        raise ValueError(f"debug_path has a null character, which no path can have: {checked!r}.")
    return checked


_launchable: weakref.WeakSet[CUDAGraph] = weakref.WeakSet()
"""The graphs with a quick launch. A quick launch does not check whether the process is a forked child."""


def _forget_in_child() -> None:
    for graph in _launchable:
        graph._launch = _cannot_launch


call_in_child(_forget_in_child)


def _discard_capture(stream: int, *, has_lost_body: bool = False) -> None:
    """End the capture of ``stream`` in any state of the capture, and delete the captured work."""
    with contextlib.suppress(AcceleratorError):
        graph = cuda.streamEndCapture(stream)
        if has_lost_body:
            cuda.graphAbandon(graph)
        else:
            cuda.graphDestroy(graph)
