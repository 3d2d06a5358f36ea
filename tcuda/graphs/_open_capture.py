"""Open captures: the capture of a graph from its begin to its end."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from tcuda._base import log
from tcuda._base.arguments import pool_id, text
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process import captured_lines as lines
from tcuda._process.captures import Capture, captures
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import (
    CAPTURE_GLOBAL,
    CAPTURE_RELAXED,
    CAPTURE_THREAD_LOCAL,
    GRAPH_AUTO_FREE_ON_LAUNCH,
    STREAM_LEGACY,
)
from tcuda.graphs._body import explained, give_streams_back
from tcuda.graphs._captured_work import CapturedWork
from tcuda.graphs._end import with_unjoined_streams
from tcuda.graphs._open_bodies import OpenBodies
from tcuda.memory._pools import MemPool

if TYPE_CHECKING:
    from tcuda.memory._pools import PoolId

_beginning = threading.RLock()
"""The lock that is held while a capture begins, so that each capture sees all captures that began before.

The lock is reentrant, because a finalizer or a signal handler that runs meanwhile may begin a capture too.
"""

_MODES = {"global": CAPTURE_GLOBAL, "thread_local": CAPTURE_THREAD_LOCAL, "relaxed": CAPTURE_RELAXED}


class OpenCapture:
    """The capture of a graph on the current stream, with the bodies that are captured at the moment.

    Args:
        graph: The :class:`tcuda.CUDAGraph`, which the capture does not keep alive.
        pool: The pool, as in :meth:`tcuda.CUDAGraph.capture_begin`.
        mode: The ``capture_error_mode`` of that call.

    Attributes:
        capture: The capture as the runtime and the other modules know it.
        pool: The handle of the pool.
        bodies: The bodies of conditional nodes that have begun and not ended.
        keeps_lines: Whether the program has asked for the lines of the nodes, for which the graph keeps its nodes.
        is_changing: Whether the capture has not begun, is ending, or is being dropped. An exception then drops the
            capture.

    Raises:
        RuntimeError: The current stream is a default stream, or ``mode`` is unknown.
        TypeError: ``pool`` is neither a pool nor the handle of a pool, or ``mode`` is not a ``str``.
        ValueError: ``TCUDA_GRAPH_LINES`` is neither 0 nor 1.
    """

    def __init__(self, graph: Any, pool: PoolId | MemPool | None, mode: str) -> None:
        checked = _checked_mode(mode)
        self.keeps_lines = lines.are_asked_for()
        memory = ledger()
        shared = None if pool is None else _checked_pool(pool)
        stream = backend.current_stream().ptr
        if stream in (0, STREAM_LEGACY, backend.default_stream.ptr):
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.) Make one current: with tcuda.stream(tcuda.Stream()), or use tcuda.graph."
            )
        self.capture = Capture(graph, stream, cuda.getDevice(), 0, checked, lines=lines.are_recorded())
        self.bodies = OpenBodies()
        self.is_changing = True
        self.pool = shared or (memory.next_pool(), 0)
        self._has_begun = False
        self._has_ended = False
        self._work: CapturedWork | None = None

    def begin(self) -> None:
        """Begin the capture.

        Raises:
            AcceleratorError: The stream is capturing.
        """
        capture = self.capture
        with _beginning:
            if not captures:  # the preparation would invalidate the captures in progress
                backend.prepare_capture()
            cuda.beginGraph(ledger(), self.pool, capture)
            self._has_begun = True
            captures.append(capture)
        self.is_changing = False
        log.debug("A capture begins on stream %#x of device %d.", capture.stream, capture.device)

    def end(self, *, keep: bool, instantiate: bool) -> CapturedWork:
        """End the capture and return its work.

        Args:
            keep: Whether to keep the ``cudaGraph_t``. The captured states of generators keep it in any case, and so do
                the lines of the nodes.
            instantiate: Whether to make a ``cudaGraphExec_t``.

        Raises:
            AcceleratorError: A call has invalidated the capture (901), or a stream that took part was not joined again
                (904).
            RuntimeError: The current stream is not the one on which the capture was begun.
        """
        capture = self.capture
        if backend.current_stream().ptr != capture.stream:
            raise RuntimeError(
                "Capture must end on the same stream it began on. The capture began on the stream "
                f"{capture.stream:#x}, and {backend.current_stream().ptr:#x} is current."
                + (" A begin_capture_to_if_node() has no end_capture_to_conditional_node() yet." if self.bodies else "")
            )
        self.is_changing = True
        if capture.is_broken or self.bodies:
            raise AcceleratorError(
                Status.STREAM_CAPTURE_INVALIDATED,
                "CUDAGraph.capture_end(): the capture of the body of a conditional node has not come to its end",
            )
        try:
            flags = GRAPH_AUTO_FREE_ON_LAUNCH if instantiate else None
            cuda.endGraph(ledger(), capture, flags, keep or self.keeps_lines or bool(capture.states))
        except AcceleratorError as error:
            raise explained(with_unjoined_streams(error, capture.stream), capture.bodies) from None
        self._work = work = CapturedWork(self.pool, capture)
        work.keeps_lines = self.keeps_lines
        self._leave()
        log.debug("The capture on stream %#x ends with %d nodes.", capture.stream, work.nodes)
        return work

    def abandon(self) -> None:
        """End the capture in any state and drop its work. A second call goes on where an interrupted call stopped."""
        capture = self.capture
        self.is_changing = True
        self.bodies.abandon()
        if self._work is None and (self._has_begun or (capture.number and ledger().has_capture(capture.number))):
            self._work = CapturedWork(self.pool, capture)
        if self._work is not None:
            if not self._has_ended:
                _discard_capture(capture.stream, has_lost_body=capture.has_lost_body)
                ledger().end_capture(capture.number)
                self._leave()
            self._work.release()
        # Without the number, the stream captures for somebody else, or not at all.
        elif capture.number and cuda.streamGetCaptureInfo(capture.stream)[1] == capture.number:
            _discard_capture(capture.stream)

    def abandon_body(self) -> None:
        """End the capture of the innermost body in any state. The capture then fails at its end."""
        self.capture.is_broken = True
        self.bodies.abandon_innermost()

    def _leave(self) -> None:
        """Forget the capture, which has ended. A second call does nothing."""
        if self.capture in captures:
            captures.remove(self.capture)
        give_streams_back(self.capture)
        self._has_ended = True


def _checked_mode(mode: Any) -> int:
    """Return the ``CAPTURE_...`` mode with a name.

    Raises:
        RuntimeError: The name is unknown.
        TypeError: ``mode`` is not a ``str``.
    """
    try:
        return _MODES[mode]
    except (KeyError, TypeError):
        text(mode, "capture_begin(): capture_error_mode")
        raise RuntimeError(
            f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {mode}"
        ) from None


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


def _discard_capture(stream: int, *, has_lost_body: bool = False) -> None:
    """End the capture of ``stream`` in any state of the capture, and delete the captured work."""
    with contextlib.suppress(AcceleratorError):
        graph = cuda.streamEndCapture(stream)
        if has_lost_body:
            cuda.graphAbandon(graph)
        else:
            cuda.graphDestroy(graph)


__all__ = ["OpenCapture"]
