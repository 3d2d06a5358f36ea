"""A CUDA graph: work that a program captures once and launches many times."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal

from tcuda._base.arguments import a_kind, flag, function
from tcuda._base.copying import refusing
from tcuda._base.cupy_names import CupyName
from tcuda._base.errors import AcceleratorError
from tcuda._base.scope import require_depth, undone_by
from tcuda._base.statuses import Status
from tcuda._device import device
from tcuda._process.asleep import asleep
from tcuda._process.captures import capture_on, require_no_capture
from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend
from tcuda._runtime.protocol import CONDITIONAL_IF
from tcuda.graphs import _picture, _stepwise
from tcuda.graphs._body import BOOL
from tcuda.graphs._graph_data import graph_data
from tcuda.graphs._open_bodies import OpenBodies
from tcuda.graphs._open_capture import OpenCapture
from tcuda.random import Generator

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from typing_extensions import Self

    from tcuda.graphs._captured_work import CapturedWork
    from tcuda.memory._pools import MemPool, PoolId

_HOW_TO_KEEP = "Make the graph with tcuda.CUDAGraph(keep_graph=True) before the capture."


class CUDAGraph:
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

    # These defaults are here, because a new graph then takes less time.
    _keep_graph: bool
    _debug = False
    _open: OpenCapture | None = None  # the capture in progress
    _work: CapturedWork | None = None  # the work of the last capture, after its end

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

    launch = CupyName("Write replay().")
    upload = CupyName("The first replay() does what upload() does.")

    # Capturing

    def _abandon_capture(self) -> None:
        """End the capture in any state and drop its work; do nothing if the graph is not capturing."""
        opened = self._open
        if opened is not None:
            self._work = None
            opened.abandon()
            self._open = None

    def _undo_change(self) -> None:
        """Drop the capture that failed to begin or to end."""
        if self._open is not None and self._open.is_changing:
            self._abandon_capture()

    @undone_by(_undo_change)
    def capture_begin(
        self,
        pool: PoolId | MemPool | None = None,
        capture_error_mode: Literal["global", "thread_local", "relaxed"] = "global",
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
            ValueError: ``TCUDA_GRAPH_LINES`` is neither 0 nor 1.
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
        if self._work is not None or self._open is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance, "
                "or call reset() first."
            )
        # The graph notes the capture before CUDA begins the capture, because a signal handler may raise in between.
        self._open = opened = OpenCapture(self, pool, capture_error_mode)
        opened.begin()

    @undone_by(_undo_change)
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
        opened = self._open
        if opened is None:
            raise AcceleratorError(Status.ILLEGAL_STATE, "CUDAGraph.capture_end()")
        keep = self._keep_graph or self._debug  # debug_dump() needs the nodes
        work = opened.end(keep=keep, instantiate=not self._keep_graph)
        self._work, self._open = work, None
        work.warn()

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
        if self._work is not None:
            raise RuntimeError(
                f"{call}: This CUDAGraph instance already owns a captured graph. Begin the body before capture_end()."
            )
        if self._open is None:
            OpenBodies().begin(None, kind, flag, kinds, call)
        else:
            self._open.bodies.begin(self._open.capture, kind, flag, kinds, call)

    def _end_body(self) -> None:
        """End the capture of the innermost body."""
        (OpenBodies() if self._open is None else self._open.bodies).end()

    def _abandon_body(self) -> None:
        """End the capture of the innermost body in any state. The capture of the graph then fails at its end."""
        if self._open is not None:
            self._open.abandon_body()

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
        if self._work is None:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        self._work.instantiate()

    def replay(self) -> None:
        """Launch the captured work (``cudaGraphLaunch``).

        The work runs on the current stream of the device of the capture.

        Raises:
            RuntimeError: The graph has captured nothing yet, the current stream is capturing, or memory that the graph
                uses is asleep.

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
        work = self._work
        if work is None or asleep or work.launch():
            self._replay_carefully()

    def _replay_carefully(self) -> None:
        work = self._work
        if work is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        with device(work.device):
            stream = backend.current_stream().ptr
            work.require_launchable(stream)
            if not work.executable:
                self.instantiate()
            work.require_awake()
            work.launch_carefully(stream)

    def replay_stepwise(self, check: Callable[[Any], Any] | None = None) -> None:
        """Run the nodes of the graph one at a time, and name the node that fails.

        The call does the work of one :meth:`replay`, in an order that the graph allows, on the current stream of the
        device of the capture. The call waits for the device first, and for the stream after each node. An error then
        names the node, its kernel, and the line of the program that captured the node. The lines are known if
        ``TCUDA_GRAPH_LINES=1`` was set at the capture, or a check was on.

        With a ``check``, the call also looks at the arrays that each node has written. Only arrays are known that the
        program holds, in any variable or container. An intermediate result that the program did not keep is not known.
        On CUDA, the parameters of a node tell which arrays the node uses. The outputs of copies, fills and CuPy's own
        kernels are known. Any other kernel may have written each of its arrays, and an array that did not pass before
        the kernel then counts as an input.

        Args:
            check: A function that takes an array, and returns whether the array is right, or an array of bool that says
                so of the elements, such as ``xp.isfinite``. The check gets arrays of all dtypes that the nodes write.

        Raises:
            AcceleratorError: A node has failed, or a capture is in progress that the waits would invalidate (900). CUDA
                refuses all later calls of the process after some errors of kernels.
            RuntimeError: An array does not pass the check. Or nothing was run: the graph has captured nothing, has not
                kept its nodes, or has a node that cannot be run alone. Such a node is an allocation of the graph, a
                conditional node, or a collective.
            TypeError: ``check`` is neither a function nor None.

        Example:
            >>> x = xp.array([4.0, 1.0, 0.0])
            >>> g = tcuda.CUDAGraph(keep_graph=True)
            >>> with tcuda.graph(g):
            ...     y = x - 1
            ...     z = xp.log(y)
            >>> try:
            ...     g.replay_stepwise(check=xp.isfinite)
            ... except RuntimeError as error:
            ...     print("values that isfinite refuses: 2 of 3 elements" in str(error))
            True
        """
        checking = None if check is None else function(check, "replay_stepwise(): check")
        work = self._finished_work("replay_stepwise()")
        if not work.graph:
            raise RuntimeError(
                f"replay_stepwise(): the graph has not kept its nodes. {_HOW_TO_KEEP} Or set TCUDA_GRAPH_LINES=1."
            )
        with device(work.device):
            work.require_awake()
            stream = backend.current_stream().ptr
            require_no_capture("CUDAGraph.replay_stepwise()", stream=stream, device=work.device)
            _stepwise.replay_stepwise(work, stream, checking)

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
        self._abandon_capture()
        if self._work is not None:
            try:
                self._work.release()
            finally:  # an exception of a signal handler before the release leaves the work for another reset()
                self._work = None

    __del__ = finalizer(reset)

    # Changing

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
        return self._kept_work("replace()").replace(old, new)

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
        if not isinstance(other, CUDAGraph):
            raise TypeError(f"update() takes a tcuda.CUDAGraph; got {a_kind(other)}.")
        if other is self:
            raise RuntimeError("update() takes another graph; a graph cannot take over its own work.")
        before, work = self._finished_work("update()"), other._kept_work("update(): other")
        work.require_generators_of(before)
        if not before.executable:
            self.instantiate()
        work.take_executable_of(before)
        self._work, other._work = work, None
        try:
            before.release()
        finally:
            work.keeps_lines = before.keeps_lines
            if not (self._keep_graph or self._debug or work.keeps_lines or work.states):
                work.forget_nodes()

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
        work, place = self._work_with_node(node, "set_node_enabled()")
        work.enable(place, switched)

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
        work, place = self._work_with_node(node, "is_node_enabled()")
        return work.is_enabled(place)

    def _work_with_node(self, node: int, call: str) -> tuple[CapturedWork, int]:
        """Return the work, which is instantiated if it is not, and the place of one of its nodes."""
        place = operator.index(node)
        work = self._kept_work(call, is_public=self._keep_graph)
        if not 0 <= place < work.nodes:
            raise IndexError(f"{call}: node is {place}, but the graph has {work.nodes} nodes.")
        if not work.executable:
            self.instantiate()
        return work, place

    def _finished_work(self, call: str) -> CapturedWork:
        if self._open is not None:
            raise RuntimeError(f"{call}: the graph is being captured. End the capture first.")
        if self._work is None:
            raise RuntimeError(f"{call}: the graph has captured nothing yet.")
        return self._work

    def _kept_work(self, call: str, *, is_public: bool = True) -> CapturedWork:
        """Return the work with its nodes, if ``call`` may use them."""
        work = self._finished_work(call)
        if not (work.graph and is_public):
            raise RuntimeError(f"{call}: the graph has not kept its nodes. {_HOW_TO_KEEP}")
        return work

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
        return self.pools()[0]

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
        if self._work is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._work.pools()

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
        if self._work is None:
            raise RuntimeError("You cannot access the raw cudaGraph_t instance until capture_end() has been called")
        return self._work.graph

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
        if self._work is None or not self._work.executable:
            raise RuntimeError(
                "You cannot access the raw cudaGraphExec_t instance until instantiate() has been called"
                if self._keep_graph
                else "You cannot access the raw cudaGraphExec_t instance until capture_end() has been called"
            )
        return self._work.executable

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

        ``tcuda graph-viz`` draws the file. If the graph knows the lines of the program that captured its nodes
        (``TCUDA_GRAPH_LINES=1``), the file has them.

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
        _picture.write(0 if self._work is None else self._work.graph, debug_path, verbose=verbose)

    def __repr__(self) -> str:
        opened, work = self._open, self._work
        if opened is not None:
            state = f"capturing on device {opened.capture.device}"
        elif work is not None:
            count = "1 node" if work.nodes == 1 else f"{work.nodes} nodes"
            state = f"{count} on device {work.device}, pool {work.pool}"
        else:
            state = "nothing captured"
        return f"<tcuda.CUDAGraph: {state}>"

    def _repr_html_(self) -> str:
        """Return a picture of the graph if the nodes are kept and Graphviz is there, or else a line of text."""
        work = self._work
        return _picture.html(0 if work is None else work.graph, repr(self), captured=work is not None)


_Generator = Generator  # because a parameter of register_generator_state() has the name Generator, as in torch

__all__ = ["CUDAGraph"]
