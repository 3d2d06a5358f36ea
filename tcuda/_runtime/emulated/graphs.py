"""The entries of the protocol for stream capture and graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._errors import AcceleratorError
from tcuda._runtime.emulated.capture import Capture
from tcuda._runtime.emulated.graph import Executable, Graph
from tcuda._runtime.emulated.machine import Machine
from tcuda._runtime.protocol import (
    CAPTURE_RELAXED,
    CAPTURE_STATUS_ACTIVE,
    CAPTURE_STATUS_INVALIDATED,
    CAPTURE_STATUS_NONE,
    GRAPH_DOT_VERBOSE,
)
from tcuda._status import Status

if TYPE_CHECKING:
    from tcuda._runtime.emulated.timeline import Mark, Timeline
    from tcuda._runtime.protocol import GraphContents


class Graphs(Machine):
    """Streams that capture, and the graphs that come of it."""

    def streamBeginCapture(self, stream: int, mode: int) -> None:
        """Let ``stream`` capture what is added to it (``cudaStreamBeginCapture``)."""
        call = f"cudaStreamBeginCapture({stream:#x}, {mode})"
        with self._lock:
            if not 0 <= mode <= CAPTURE_RELAXED:
                raise AcceleratorError(Status.INVALID_VALUE, call)
            timeline = self._stream(stream, call)
            if timeline.handle == 0:
                raise AcceleratorError(Status.STREAM_CAPTURE_UNSUPPORTED, call)
            if timeline.capture is not None:
                raise AcceleratorError(Status.ILLEGAL_STATE, call)
            timeline.capture = Capture(next(self._capture_numbers), timeline.handle, timeline.device, mode)
            self._captures.append(timeline.capture)

    def streamEndCapture(self, stream: int) -> int:
        """End the capture that was begun on ``stream``, and return the graph (``cudaStreamEndCapture``)."""
        call = f"cudaStreamEndCapture({stream:#x})"
        with self._lock:
            timeline = self._stream(stream, call)
            capture = timeline.capture
            if capture is None:
                raise AcceleratorError(Status.ILLEGAL_STATE, call)
            if not capture.may_end_here():
                self._end(capture)
                raise AcceleratorError(Status.STREAM_CAPTURE_WRONG_THREAD, call)
            if capture.origin != timeline.handle:
                raise self._spoil(capture, call, Status.STREAM_CAPTURE_UNMATCHED)
            self._end(capture)
            if not capture.valid:
                raise AcceleratorError(Status.STREAM_CAPTURE_INVALIDATED, call)
            if not capture.joined():
                raise AcceleratorError(Status.STREAM_CAPTURE_UNJOINED, call)
            graph = self._new_handle()
            self._graphs[graph] = capture.graph
            return graph

    def streamIsCapturing(self, stream: int) -> bool:
        """Return whether ``stream`` captures (``cudaStreamIsCapturing``)."""
        call = f"cudaStreamIsCapturing({stream:#x})"
        with self._lock:
            capture = self._capture_of(stream, call)
            if capture is not None and not capture.valid:
                raise AcceleratorError(Status.STREAM_CAPTURE_INVALIDATED, call)
            return capture is not None

    def streamGetCaptureInfo(self, stream: int) -> tuple[int, int]:
        """Return the status of ``stream``, and the number of its capture (``cudaStreamGetCaptureInfo``)."""
        with self._lock:
            capture = self._capture_of(stream, f"cudaStreamGetCaptureInfo({stream:#x})")
            if capture is None:
                return CAPTURE_STATUS_NONE, 0
            return CAPTURE_STATUS_ACTIVE if capture.valid else CAPTURE_STATUS_INVALIDATED, capture.number

    def graphDestroy(self, graph: int) -> None:
        """Forget ``graph``; what was instantiated of it stays (``cudaGraphDestroy``)."""
        if self._graphs.pop(graph, None) is None:
            raise AcceleratorError(Status.INVALID_VALUE, f"cudaGraphDestroy({graph:#x})")

    def graphInstantiate(self, graph: int, flags: int) -> int:
        """Return an executable graph with the nodes of ``graph`` (``cudaGraphInstantiate``)."""
        call = f"cudaGraphInstantiate({graph:#x}, {flags})"
        with self._lock:
            captured = self._graph(graph, call)
            handle = self._new_handle()
            self._executables[handle] = Executable(captured)
            return handle

    def graphLaunch(self, graphExec: int, stream: int) -> None:
        """Run an executable graph on ``stream`` (``cudaGraphLaunch``)."""
        call = f"cudaGraphLaunch({graphExec:#x}, {stream:#x})"
        with self._lock:
            executable = self._executables.get(graphExec)
            if executable is None:
                raise AcceleratorError(Status.INVALID_VALUE, call)
            timeline = self._stream(stream, call)
            if timeline.capture is not None:
                raise self._spoil(timeline.capture, call)
            self._forbid_implicit(timeline, call)
        # Not under the lock: the work may be slow while another thread launches its own.
        executable.run()
        with self._lock:
            self._occupy(timeline, *executable.complete(self._start(timeline, call)))

    def graphLauncher(self, graphExec: int) -> Launcher:
        """Return what launches an executable graph on the current stream."""
        return Launcher(self, graphExec, self._thread.device)

    def _launch_on_current_stream(self, graphExec: int, device: int) -> int:
        """Launch an executable graph while ``device`` is current, and return success, or else return why not."""
        if self._thread.device != device:
            return Status.DEVICE_UNINITIALIZED
        stream = self._thread.current(-1).ptr
        with self._lock:
            if graphExec not in self._executables:
                return Status.INVALID_VALUE
            timeline = self._stream(stream, "cudaGraphLaunch()")
            if timeline.capture is not None:
                return Status.STREAM_CAPTURE_UNSUPPORTED
            if self._implicit_capture(timeline) is not None:
                return Status.STREAM_CAPTURE_IMPLICIT
        self.graphLaunch(graphExec, stream)
        return Status.SUCCESS

    def graphExecDestroy(self, graphExec: int) -> None:
        """Forget an executable graph (``cudaGraphExecDestroy``)."""
        if self._executables.pop(graphExec, None) is None:
            raise AcceleratorError(Status.INVALID_VALUE, f"cudaGraphExecDestroy({graphExec:#x})")

    def graphDebugDotPrint(self, graph: int, path: str, flags: int) -> None:
        """Write ``graph`` to the file ``path`` in the language of Graphviz (``cudaGraphDebugDotPrint``)."""
        call = f"cudaGraphDebugDotPrint({graph:#x}, {path!r}, {flags})"
        drawing = self._graph(graph, call).dot(verbose=bool(flags & GRAPH_DOT_VERBOSE))
        try:
            Path(path).write_text(drawing)
        except OSError:
            raise AcceleratorError(Status.OPERATING_SYSTEM, call) from None

    def graphContents(self, graph: int) -> GraphContents:
        """Return how many nodes ``graph`` has, and which memory they work on."""
        return self._graph(graph, f"cudaGraphGetNodes({graph:#x})").contents()

    def capturing(self) -> bool:
        """Return whether the current stream takes part in a capture, be it spoiled or not."""
        if not self._captures:
            return False  # at once: every operation on an array asks
        return self._stream(self._thread.current(-1).ptr, "cudaStreamIsCapturing()").capture is not None

    def _graph(self, handle: int, call: str) -> Graph:
        graph = self._graphs.get(handle)
        if graph is None:
            raise AcceleratorError(Status.INVALID_VALUE, call)
        return graph

    def _capture_of(self, stream: int, call: str) -> Capture | None:
        """Return the capture that ``stream`` takes part in; refuse to tell where that depends on other streams."""
        timeline = self._stream(stream, call)
        if self._implicit_capture(timeline) is not None:
            raise AcceleratorError(Status.STREAM_CAPTURE_IMPLICIT, call)
        return timeline.capture

    def _wait_in_capture(self, timeline: Timeline, mark: Mark, capture: Capture, call: str) -> None:
        if not capture.active:
            raise AcceleratorError(Status.INVALID_VALUE, call)
        if timeline.handle == 0:
            raise self._spoil(capture, call, Status.STREAM_CAPTURE_IMPLICIT)
        if timeline.capture not in (None, capture):
            timeline.capture.valid = False
            raise self._spoil(capture, call, Status.STREAM_CAPTURE_MERGE)
        timeline.capture = capture
        capture.wait(timeline.handle, mark.places)

    def _end(self, capture: Capture) -> None:
        """Let nothing capture any more; the origin last, so that the end can be asked for again after an exception."""
        taking_part = [*self._streams.values(), *self._per_thread.values()]
        taking_part = [timeline for timeline in taking_part if timeline.capture is capture]
        origins = [timeline for timeline in taking_part if timeline.handle == capture.origin]
        for timeline in taking_part:
            if timeline not in origins:
                timeline.capture = None
        if capture in self._captures:
            self._captures.remove(capture)
        capture.active = False
        for timeline in origins:
            timeline.capture = None


class Launcher:
    """Launches an executable graph on the current stream of a device, while that is current.

    Attributes:
        launched: Whether it was asked to.
    """

    def __init__(self, graphs: Graphs, executable: int, device: int) -> None:
        self._graphs = graphs
        self._executable = executable
        self._device = device
        self.launched = False

    def launch(self) -> int:
        """Launch the graph and return success, or do nothing and return why not."""
        self.launched = True
        return self._graphs._launch_on_current_stream(self._executable, self._device)
