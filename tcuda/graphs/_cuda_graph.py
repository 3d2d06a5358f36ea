"""A CUDA graph: work that is captured once and launched many times."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

from tcuda._arguments import flag, pool_id, text
from tcuda._copying import refusing
from tcuda._device import device
from tcuda._errors import AcceleratorError
from tcuda._process.captures import Capture, capture_on, captures
from tcuda._process.exit import finalizer
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import (
    CAPTURE_GLOBAL,
    CAPTURE_RELAXED,
    CAPTURE_STATUS_NONE,
    CAPTURE_THREAD_LOCAL,
    GRAPH_AUTO_FREE_ON_LAUNCH,
    GRAPH_DOT_VERBOSE,
    STREAM_LEGACY,
)
from tcuda._scope import undone_by
from tcuda._status import Status
from tcuda.random import Generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from tcuda._backend import GraphLauncher
    from tcuda.memory._pools import PoolId

_beginning = threading.RLock()
"""Held while a capture begins, so that each sees those that have begun before.

Reentrant, because a finalizer or a signal handler that runs meanwhile may begin a capture too.
"""

_MODES = {"global": CAPTURE_GLOBAL, "thread_local": CAPTURE_THREAD_LOCAL, "relaxed": CAPTURE_RELAXED}


class CUDAGraph:
    """Work of one or more streams that was captured, to be launched as a whole (``torch.cuda.CUDAGraph``).

    :class:`tcuda.graph` captures into one. What is allocated on the capturing streams comes from a pool of the graph's
    own, and stays where it is until the graph is reset or gone: every replay works on the same memory, and writes its
    results to the arrays that the capture made. Memory that was there before, and that the graph reads or writes, is
    kept as long, whether arrays over it live or not.

    Random numbers that are drawn in the capture are new ones at every replay: those that the generator would give if
    the captured functions were called instead.

    Args:
        keep_graph: Whether to keep the ``cudaGraph_t`` for :meth:`raw_cuda_graph`, and to leave it to
            :meth:`instantiate`, or to the first replay, to make a ``cudaGraphExec_t`` of it.
    """

    _keep_graph: bool
    _debug: bool
    _capture: Capture | None
    _beginning: bool  # whether capture_begin() has begun and not ended
    _ending: bool

    # In __new__, as in torch: a subclass may have other arguments in its __init__, and need not call this one's.
    def __new__(cls, keep_graph: bool = False) -> Self:
        self = object.__new__(cls)
        self._keep_graph = flag(keep_graph, "keep_graph")
        self._debug = False
        self._capture = None
        self._beginning = self._ending = False
        self._forget()
        return self

    __reduce__ = refusing(
        "copy or pickle",
        "both would own the same CUDA graph and its memory. Capture the work again into another CUDAGraph.",
    )

    def _forget(self) -> None:
        """Be as a graph that never captured anything."""
        self._pool: PoolId | None = None
        self._device = -1
        self._graph = 0
        self._executable = 0
        self._captured = False
        self._replayed = False
        self._held: list[int] = []
        self._states: tuple[Any, ...] = ()
        self._events: tuple[Any, ...] = ()
        self._launcher: GraphLauncher | None = None
        self._launch: Callable[[], int] = _cannot_launch

    # Capturing

    def _undo_begin(self) -> None:
        """Put back what :meth:`capture_begin` has done before it raised."""
        capture = self._capture
        if self._beginning and capture is not None:
            capture.number = capture.number or cuda.streamGetCaptureInfo(capture.stream)[1]
            if capture.number and ledger().has_capture(capture.number):
                self._abandon_capture()
            else:
                _discard_capture(capture.stream)
                self._capture = None
                self._forget()
        self._beginning = False

    @undone_by(_undo_begin)
    def capture_begin(
        self, pool: PoolId | None = None, capture_error_mode: str = "global", check_input_liveness: bool = False
    ) -> None:
        """Begin to capture the work of the current stream (``cudaStreamBeginCapture``).

        :class:`tcuda.graph` does it, and undoes it if something fails.

        Args:
            pool: Whose memory to use: what :func:`graph_pool_handle` or :meth:`pool` of another graph returned. Graphs
                that share a pool must be replayed in the order in which they were captured, and never at a time.
            capture_error_mode: Who may not wait for streams meanwhile: all threads (``"global"``), this one
                (``"thread_local"``), or none (``"relaxed"``). Memory can be allocated in any case.
            check_input_liveness: Taken for torch's sake: the memory that the graph reads is kept in any case.

        Raises:
            RuntimeError: A graph has been captured already, or the current stream is the default stream, or there is no
                such mode.
            TypeError: ``pool`` is no pool's handle, or ``capture_error_mode`` is no ``str``.
            AcceleratorError: The current stream is capturing.
        """
        if self._captured or self._capture is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance, "
                "or call reset() first."
            )
        if text(capture_error_mode, "capture_begin(): capture_error_mode") not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        mode = _MODES[capture_error_mode]
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
                backend.prepare_capture()  # a capture cannot make one, and may want to multiply matrices
            if cuda.streamGetCaptureInfo(stream)[0] != CAPTURE_STATUS_NONE:
                cuda.streamBeginCapture(stream, mode)  # which refuses, and whose capture is not this graph's to end
            # All is noted before it is done, because a signal handler may raise in between.
            self._beginning, self._pool, self._device = True, used, index
            self._capture = capture = Capture(self, stream, index, 0, mode)
            cuda.streamBeginCapture(stream, mode)
            capture.number = memory.begin_capture(used, index, stream)
            captures.append(capture)
        self._beginning = False

    def _undo_end(self) -> None:
        """Keep nothing of the capture that :meth:`capture_end` has failed to end."""
        if self._ending:
            self._abandon_capture()
        self._ending = False

    @undone_by(_undo_end)
    def capture_end(self) -> None:
        """End the capture (``cudaStreamEndCapture``), and make the graph ready for :meth:`replay`.

        If that fails the graph is as it was before :meth:`capture_begin`, and the stream no longer captures.

        Raises:
            RuntimeError: The current stream is not the one on which the capture was begun.
            AcceleratorError: There is no capture (401), or a call has invalidated it (901), or a stream that took
                part was not joined again (904).
        """
        capture = self._capture
        if capture is None:
            raise AcceleratorError(Status.ILLEGAL_STATE, "CUDAGraph.capture_end()")
        if backend.current_stream().ptr != capture.stream:
            raise RuntimeError(
                "Capture must end on the same stream it began on. It began on the stream "
                f"{capture.stream:#x}, and {backend.current_stream().ptr:#x} is current."
            )
        self._ending = True
        self._graph = cuda.streamEndCapture(capture.stream)
        nodes, addresses = cuda.graphContents(self._graph)
        self._held = ledger().hold(addresses, capture.number)
        self._states = tuple(capture.states.values())
        self._events = tuple(capture.events)
        if not self._keep_graph:
            self._executable = cuda.graphInstantiate(self._graph, GRAPH_AUTO_FREE_ON_LAUNCH)
            if not (self._debug or self._states):  # which need the nodes
                graph, self._graph = self._graph, 0
                cuda.graphDestroy(graph)
        self._captured = True
        self._find_launcher()
        self._end_capture()
        self._ending = False
        if not nodes:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream.",
                stacklevel=_stacklevel(),
            )

    def _abandon_capture(self) -> None:
        """End the capture, and keep nothing of it."""
        if self._capture is not None:
            _discard_capture(self._capture.stream)
            self._end_capture()
            self._release()

    def _end_capture(self) -> None:
        """Let memory be allocated and freed as always; to do it twice does no harm."""
        capture = self._capture
        if capture is not None:
            if capture in captures:
                captures.remove(capture)
            ledger().end_capture(capture.number)
            self._capture = None

    @staticmethod
    def get_currently_capturing_graph() -> CUDAGraph:
        """Return the graph that the current stream captures into (``torch.cuda.CUDAGraph``).

        Raises:
            RuntimeError: The current stream does not capture, or not into a graph of tcuda's.
        """
        capture = capture_on(backend.current_stream().ptr)
        if capture is None:
            raise RuntimeError("The current stream is not currently capturing into a tcuda.CUDAGraph.")
        graph: CUDAGraph = capture.graph
        return graph

    def register_generator_state(self, Generator: Generator) -> None:  # noqa: N803  # torch's name for it
        """Say that ``Generator`` will draw in the capture, which torch wants to know of other than default generators.

        Here it makes no difference: any generator may draw in a capture.

        Raises:
            TypeError: It is no generator.
        """
        if not isinstance(Generator, _Generator):
            raise TypeError(f"expected a Generator, but got {type(Generator).__name__}")

    # Replaying

    def instantiate(self) -> None:
        """Make a ``cudaGraphExec_t`` of the ``cudaGraph_t`` as it is now (``cudaGraphInstantiate``).

        Raises:
            RuntimeError: The graph was not made with ``keep_graph=True``, or nothing has been captured yet.
        """
        if not self._keep_graph:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        if not self._captured:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        made = cuda.graphInstantiate(self._graph, GRAPH_AUTO_FREE_ON_LAUNCH)
        before, self._executable = self._executable, made
        self._replayed = self._replayed or (self._launcher is not None and self._launcher.launched)
        with device(self._device):
            self._find_launcher()
        if before:
            cuda.graphExecDestroy(before)

    def replay(self) -> None:
        """Launch what was captured on the current stream of the device of the capture (``cudaGraphLaunch``).

        Raises:
            RuntimeError: Nothing has been captured yet, or the current stream is capturing.
        """
        if self._launch():
            self._replay_carefully()

    def _find_launcher(self) -> None:
        """Find a quick way to launch, where nothing has to be done before; the device of the capture is current."""
        if self._executable and not self._states:
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
            self._replayed = True
            for state in self._states:
                if status := state.prepare(self._executable):
                    raise AcceleratorError(status, "cuGraphExecKernelNodeSetParams")
            cuda.graphLaunch(self._executable, stream)

    def reset(self) -> None:
        """Delete the graph, and give its memory back; another one can be captured then.

        Waits for the device, because the graph may be running. Memory of arrays that live on goes back later: when
        memory is wanted, or by :func:`empty_cache`.

        Raises:
            RuntimeError: The graph is being captured.
        """
        if self._capture is not None:
            raise RuntimeError("The graph is being captured: call capture_end() before reset().")
        if self._captured:
            self._release()

    def _release(self) -> None:
        pool, held = self._pool, self._held
        replayed = self._replayed or (self._launcher is not None and self._launcher.launched)
        graph, executable, events = self._graph, self._executable, self._events
        self._forget()
        try:
            if executable:
                cuda.graphExecDestroy(executable)
        finally:  # each of them, though one of them may fail
            try:
                if graph:
                    cuda.graphDestroy(graph)
            finally:
                del events  # not before: the graph refers to them
                if pool is not None:
                    ledger().release_graph(pool, held, replayed)

    def _release_if_captured(self) -> None:
        if getattr(self, "_captured", False):  # a subclass may not call CUDAGraph.__new__
            self._release()

    __del__ = finalizer(_release_if_captured)

    # Looking inside

    def pool(self) -> PoolId:
        """Return the handle of the pool of its memory, which other graphs may share.

        Raises:
            RuntimeError: Nothing has been captured yet.
        """
        if not self._captured or self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def raw_cuda_graph(self) -> int:
        """Return the ``cudaGraph_t``.

        Raises:
            RuntimeError: The graph was not made with ``keep_graph=True``, or nothing has been captured yet.
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

        A launch of it that is not :meth:`replay` draws the random numbers of the replay before once more.

        Raises:
            RuntimeError: There is none yet.
        """
        if not self._executable:
            raise RuntimeError(
                "You cannot access the raw cudaGraphExec_t instance until instantiate() has been called"
                if self._keep_graph
                else "You cannot access the raw cudaGraphExec_t instance until capture_end() has been called"
            )
        return self._executable

    def enable_debug_mode(self) -> None:
        """Let :meth:`debug_dump` work, for a capture that comes after this call."""
        self._debug = True

    def debug_dump(self, debug_path: str | os.PathLike[str]) -> None:
        """Write the graph to a file in the DOT language (``cudaGraphDebugDotPrint``); ``tcuda graph-viz`` draws it.

        Args:
            debug_path: Where to.

        Raises:
            RuntimeError: Nothing has been captured since :meth:`enable_debug_mode`, nor with ``keep_graph=True``.
            TypeError: ``debug_path`` is no path.
            ValueError: The path has characters that no path can have.
            AcceleratorError: The file cannot be written.
        """
        if not self._debug:
            warnings.warn("CUDA Graphs debug not enabled, set with [graph].enable_debug_mode()", stacklevel=2)
            return
        if not self._graph:
            raise RuntimeError(
                "There is no graph to dump: call enable_debug_mode() before the capture, or make the graph with "
                "keep_graph=True."
            )
        cuda.graphDebugDotPrint(self._graph, _checked_path(debug_path), GRAPH_DOT_VERBOSE)


_Generator = Generator  # a parameter has torch's name, which is the same


def _checked_pool(pool: Any) -> PoolId:
    """Return the handle of a pool.

    Raises:
        TypeError: It is none.
    """
    if pool_id(pool, "capture_begin(): pool") == (0, 0):
        raise TypeError("capture_begin(): pool is (0, 0), the memory that all share; give None for a pool of its own.")
    return pool  # type: ignore[no-any-return]


def _checked_path(path: Any) -> str:
    """Return a path that C can name.

    Raises:
        TypeError: It is no path.
        ValueError: It has characters that no path can have.
    """
    checked = os.fsdecode(path)
    if b"\0" in os.fsencode(checked):
        raise ValueError(f"debug_path has a null character, which no path can have: {checked!r}.")
    return checked


def _cannot_launch() -> int:
    """Stand where there is no quick way to launch."""
    return Status.INVALID_VALUE


_launchable: weakref.WeakSet[CUDAGraph] = weakref.WeakSet()
"""The graphs that have a quick way to launch, which does not ask whether tcuda is initialised."""


def _forget_in_child() -> None:
    for graph in _launchable:
        graph._launch = _cannot_launch


call_in_child(_forget_in_child)


def _discard_capture(stream: int) -> None:
    """End the capture of a stream, whatever has become of it."""
    with contextlib.suppress(AcceleratorError):
        cuda.graphDestroy(cuda.streamEndCapture(stream))


def _stacklevel() -> int:
    """Return the level of the first frame outside of this package, for a warning of its caller."""
    level, frame = 2, sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tcuda.graphs"):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level
