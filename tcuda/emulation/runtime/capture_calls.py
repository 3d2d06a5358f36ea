"""The calls for captures, and for the conditional nodes that a capture adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.errors import AcceleratorError, UnjoinedStream
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    CAPTURE_STATUS_ACTIVE,
    CAPTURE_STATUS_INVALIDATED,
    CAPTURE_STATUS_NONE,
    CONDITIONAL_IF,
    CONDITIONAL_WHILE,
)
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.conditionals import Condition, ConditionalNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcuda import _core
    from tcuda._base.user_code import Place
    from tcuda._runtime.protocol import Conditional, GraphCapture
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.captures import Capture
    from tcuda.emulation.runtime.graph_calls import GraphCalls
    from tcuda.emulation.runtime.graphs import Node
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.operations import Operations


class CaptureCalls:
    """The calls for captures.

    Args:
        machine: The state of the devices.
        operations: Adds operations to streams.
        graph_calls: Make an executable graph of what a capture has kept.
    """

    def __init__(self, machine: Machine, operations: Operations, graph_calls: GraphCalls) -> None:
        self._lock = machine.lock
        self._contents = machine.contents
        self._captures = machine.captures
        self._streams = machine.streams
        self._graphs = machine.graphs
        self._operations = operations
        self._graph_calls = graph_calls

    def streamBeginCapture(self, stream: int, mode: int) -> None:
        call = "cudaStreamBeginCapture({:#x}, {})", stream, mode
        with self._lock:
            if not 0 <= mode <= CAPTURE_RELAXED:
                raise failure(Status.INVALID_VALUE, call)
            self._begin_capture(stream, mode, call)

    def streamBeginCaptureToGraph(self, stream: int, graph: int, mode: int) -> None:
        """Capture the work of ``stream`` into ``graph``, which must be the body of a conditional node."""
        call = "cudaStreamBeginCaptureToGraph({:#x}, {:#x}, {})", stream, graph, mode
        with self._lock:
            node = self._graphs.conditionals.find(graph)
            if node is None or not 0 <= mode <= CAPTURE_RELAXED:
                raise failure(Status.INVALID_VALUE, call)
            self._begin_capture(stream, mode, call, node.body, graph).lines = node.stack != 0

    def _begin_capture(
        self, stream: int, mode: int, call: Call, *into: Any, noted: GraphCapture | None = None
    ) -> Capture:
        """Begin and return the capture of ``stream``, and note its number in ``noted``.

        ``into`` is nothing, or the body of a conditional node and its handle.
        """
        timeline = self._streams.find(stream, call)
        if timeline.handle == 0:
            raise failure(Status.STREAM_CAPTURE_UNSUPPORTED, call)
        if timeline.capture is not None:
            raise failure(Status.ILLEGAL_STATE, call)
        begun = self._captures.new(timeline.handle, timeline.device, mode, *into)
        if noted is not None:
            noted.number = begun.number  # before the capture begins, because a signal handler may raise in between
            begun.lines = noted.lines
        timeline.capture = begun
        self._captures.in_progress.append(begun)
        return begun

    def streamEndCapture(self, stream: int) -> int:
        call = "cudaStreamEndCapture({:#x})", stream
        with self._lock:
            timeline = self._streams.find(stream, call)
            capture = timeline.capture
            if capture is None:
                raise failure(Status.ILLEGAL_STATE, call)
            if not capture.may_end_here():
                self._streams.end_capture(capture)
                capture.drop_graph()
                raise failure(Status.STREAM_CAPTURE_WRONG_THREAD, call)
            if capture.origin != timeline.handle:
                raise capture.invalidate(call, Status.STREAM_CAPTURE_UNMATCHED)
            self._streams.end_capture(capture)
            try:
                return self._captured(capture, call)
            finally:
                capture.drop_graph()

    def _captured(self, capture: Capture, call: Call) -> int:
        """Return the graph of ``capture``, which has ended."""
        if not capture.valid:
            raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
        unjoined = capture.unjoined()
        if unjoined:
            raise self._unjoined(capture, unjoined, call)
        if capture.body_handle:
            return capture.body_handle
        return self._graphs.add(capture.graph)

    def _unjoined(self, capture: Capture, streams: Mapping[int, Place | None], call: Call) -> AcceleratorError:
        """Return the error for the end of ``capture``, which does not wait for ``streams``."""
        error = failure(Status.STREAM_CAPTURE_UNJOINED, call)
        for stream, place in streams.items():
            timeline = self._streams.created.get(stream)  # None for a destroyed stream
            device = capture.device if timeline is None else timeline.device
            error._unjoined = (*error._unjoined, UnjoinedStream(device, stream, place))
        return error

    def streamIsCapturing(self, stream: int) -> bool:
        call = "cudaStreamIsCapturing({:#x})", stream
        with self._lock:
            capture = self._capture_of(stream, call)
            if capture is not None and not capture.valid:
                raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
            return capture is not None

    def streamGetCaptureInfo(self, stream: int) -> tuple[int, int]:
        with self._lock:
            capture = self._capture_of(stream, ("cudaStreamGetCaptureInfo({:#x})", stream))
            if capture is None:
                return CAPTURE_STATUS_NONE, 0
            return CAPTURE_STATUS_ACTIVE if capture.valid else CAPTURE_STATUS_INVALIDATED, capture.number

    def captureOf(self, device: int, stream: int) -> int:
        """Return the number of the capture in which ``stream`` of ``device`` takes part; 0 if there is none."""
        with self._lock:
            capture = self._streams.find(stream, ("cudaStreamGetCaptureInfo({:#x})", stream), device).capture
            return 0 if capture is None else capture.number

    def capturing(self, current_stream: Callable[[], Any]) -> bool:
        """Return whether a stream takes part in a capture, also in an invalidated one.

        Args:
            current_stream: A function that returns the stream, whose handle is its ``ptr``. The function is called only
                if a stream captures.
        """
        if not self._captures.in_progress:  # the common case, because every operation on an array asks
            return False
        return self._streams.find(current_stream().ptr, ("cudaStreamIsCapturing()",)).capture is not None

    defers = capturing
    """Return whether the work of a stream is done later than in the call that launches the work.

    Such work must keep no memory alive. The argument is that of :meth:`capturing`.
    """

    def _capture_of(self, stream: int, call: Call) -> Capture | None:
        """Return the capture in which ``stream`` takes part; refuse a default stream if another stream captures."""
        timeline = self._streams.find(stream, call)
        if self._captures.in_progress and self._streams.capture_beside(timeline) is not None:
            raise failure(Status.STREAM_CAPTURE_IMPLICIT, call)
        return timeline.capture

    def beginGraph(self, ledger: _core.Ledger, pool: tuple[int, int], capture: GraphCapture) -> None:
        call = "cudaStreamBeginCapture({:#x}, {})", capture.stream, capture.mode
        expected = ledger.expect_capture()
        try:
            with self._lock:
                self._begin_capture(capture.stream, capture.mode, call, noted=capture)
            ledger.begin_capture(pool, capture.device, capture.stream)
        finally:
            expected.end()

    def endGraph(self, ledger: _core.Ledger, capture: GraphCapture, flags: int | None, keep: bool) -> None:
        graph = self.streamEndCapture(capture.stream)
        capture.ended = graph, 0, 0, []
        nodes, addresses = self._graph_calls.graphContents(graph)
        for body in capture.bodies:
            addresses = [*addresses, *self._graph_calls.graphContents(body).addresses]
        held = ledger.hold(addresses, capture.number)
        capture.ended = graph, 0, nodes, held
        executable = 0 if flags is None else self._graph_calls.graphInstantiate(graph, flags)
        capture.ended = (graph if keep else 0), executable, nodes, held
        if not keep:
            self._graph_calls.graphDestroy(graph)
        ledger.end_capture(capture.number)

    def streamAddConditional(self, stream: int, kind: int, flag: int, size: int) -> Conditional:
        call = "cudaGraphAddNode({:#x}, {})", stream, kind
        with self._lock:
            if kind not in (CONDITIONAL_IF, CONDITIONAL_WHILE):
                raise failure(Status.INVALID_VALUE, call)
            timeline = self._streams.of_current_device(stream, call)
            if timeline.capture is None:
                raise failure(Status.ILLEGAL_STATE, call)
            condition = Condition()
            node = ConditionalNode(condition, self._captures.new_body(), repeats=kind == CONDITIONAL_WHILE)
            self._operations.enqueue(timeline, self._deciding(condition.setter(flag, size)), call)
            self._operations.enqueue(timeline, node, call)
            return self._graphs.conditionals.add(node)

    def streamSetConditional(self, stream: int, handle: int, flag: int, size: int) -> None:
        call = "cudaLaunchKernel({:#x})", stream
        with self._lock:
            node = self._graphs.conditionals.find(handle)
            timeline = self._streams.of_current_device(stream, call)
            if node is None or timeline.capture is None:
                raise failure(Status.INVALID_VALUE, call)
            self._operations.enqueue(timeline, self._deciding(node.condition.setter(flag, size)), call)

    def _deciding(self, node: Node) -> Node:
        """Let ``node``, whose result decides what a graph does, refuse memory that no work has written."""
        if self._contents.unwritten is not None:
            node.work = self._contents.unwritten.around(node.work, node.accesses, node.name, decides=True)
        return node
