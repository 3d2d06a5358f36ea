"""The captures of CUDA graphs that are in progress.

Most calls that CUDA forbids during a capture invalidate the capture. The capture then ends in an error that does not
name the call. So the functions of tcuda that make such calls ask this module first, which refuses the call, and the
capture goes on.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED, CAPTURE_STATUS_NONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._core import PhiloxState

_green_contexts: weakref.WeakSet[Any] | None = None
"""The green contexts of the process; None if there was none yet. To ask an empty set takes longer."""


def keep_in_graphs(context: Any) -> None:
    """Let the graphs of later captures keep a green context, whose kernels may run in them."""
    global _green_contexts
    if _green_contexts is None:
        _green_contexts = weakref.WeakSet()
    _green_contexts.add(context)


class Capture:
    """A capture that a :class:`tcuda.CUDAGraph` has begun.

    The capture does not keep the graph alive, because a graph that dies ends its capture.

    Args:
        graph: The :class:`tcuda.CUDAGraph`.
        stream: The handle of the stream on which the capture was begun.
        device: The device of that stream.
        number: The number that CUDA gave the capture; 0 before the capture begins.
        mode: The ``CAPTURE_...`` mode of the capture.
        lines: The attribute of this name.

    Attributes:
        ended: What the end of the capture has made; see :class:`~tcuda._runtime.protocol.GraphCapture`.
        states: For the state of each generator that draws in the capture, the captured state that the kernels read.
        marks: For the state of each generator that the program reads in the capture, a number of the two.
        events: What every launch of the graph refers to: external events, green contexts, and pools of memory.
        host_memory: The arrays of the host that every launch of the graph reads.
        mode: The ``CAPTURE_...`` mode of the capture.
        bodies: The ``cudaGraph_t`` of the bodies of all conditional nodes, nested ones too.
        lines: Whether the runtime records the line of the program that captures each node.
        is_broken: Whether the capture of a body failed, so that the graph would lack work.
        has_lost_body: Whether the capture of a body failed at its end.
    """

    ended: tuple[int, int, int, list[int]] | None = None
    is_broken = False
    has_lost_body = False

    def __init__(self, graph: Any, stream: int, device: int, number: int, mode: int, *, lines: bool = False) -> None:
        self._graph = weakref.ref(graph)
        self.stream = stream
        self.device = device
        self.number = number
        self.states: dict[PhiloxState, Any] = {}
        self.marks: dict[PhiloxState, int] = {}
        # All of them, because nobody knows yet whose streams will take part.
        self.events: list[Any] = [] if _green_contexts is None else list(_green_contexts)
        self.host_memory: list[Any] = []
        self.bodies: list[int] = []
        self.lines = lines
        self.mode = mode
        self._thread = threading.get_ident()

    @property
    def graph(self) -> Any:
        """The :class:`tcuda.CUDAGraph` that has begun the capture; None if the graph dies at this moment."""
        return self._graph()

    def forbids_unsafe_calls(self) -> bool:
        """Return whether this thread must neither synchronize nor query any stream (``cudaStreamCaptureMode``)."""
        if self.mode == CAPTURE_GLOBAL:
            return True
        return self.mode != CAPTURE_RELAXED and self.is_of_this_thread()

    def is_of_this_thread(self) -> bool:
        """Return whether this thread has begun the capture."""
        return self._thread == threading.get_ident()

    def state_for(self, state: PhiloxState, make: Callable[[], Any]) -> Any:
        """Return the captured state that the kernels read for ``state``; the first call makes it with ``make``."""
        if state not in self.states:
            self.states[state] = make()
        return self.states[state]


class BodyCapture(Capture):
    """The capture of the body of a conditional node, which CUDA numbers as a capture of its own.

    Args:
        whole: The capture of the graph that has the node.
        stream: The handle of the stream on which the body is captured.
        device: The device of that stream.
        number: The number that CUDA gave the capture of the body.
    """

    def __init__(self, whole: Capture, stream: int, device: int, number: int) -> None:
        super().__init__(whole.graph, stream, device, number, whole.mode)
        self.states, self.marks = whole.states, whole.marks
        self.events = whole.events
        self.host_memory = whole.host_memory

    def state_for(self, state: PhiloxState, make: Callable[[], Any]) -> Any:
        """Refuse a draw of random numbers.

        Raises:
            RuntimeError: Always: how many numbers a launch draws would depend on the flag, which only the device knows.
        """
        raise RuntimeError(
            "RNG within data-dependent conditional nodes is not supported yet. Draw the random numbers before the "
            "node, in the capture but not in the body."
        )


captures: list[Capture] = []
"""The captures in progress. The list is empty nearly always, and calls on a fast path only test that."""


def capture_on(stream: int) -> Capture | None:
    """Return the capture in which ``stream`` takes part; None if tcuda has begun no such capture."""
    if not captures:
        return None
    status, number = cuda.streamGetCaptureInfo(stream)
    if status == CAPTURE_STATUS_NONE:
        return None
    return next((capture for capture in captures if capture.number == number), None)


def number_on(stream: int) -> int:
    """Return the number of the capture in which ``stream`` takes part; 0 if tcuda has begun no such capture."""
    capture = capture_on(stream)
    return 0 if capture is None else capture.number


def require_same_capture(call: str, stream: int, number: int) -> None:
    """Refuse ``call`` if it lets a capturing stream wait for work outside of its capture.

    A stream that does not capture may wait for the work of a capture. The stream then takes part in that capture.

    Args:
        call: The name of the call in the error.
        stream: The handle of the stream that waits.
        number: The number of the capture that has the work for which the stream waits; 0 if the work is in no capture.
            The number of an ended capture counts as 0.

    Raises:
        AcceleratorError: The wait would invalidate the capture of ``stream`` (905), or both captures (902). The
            captures go on.
    """
    own = number_on(stream)
    if own not in (0, number):
        others = any(capture.number == number for capture in captures)
        raise AcceleratorError(Status.STREAM_CAPTURE_MERGE if others else Status.STREAM_CAPTURE_ISOLATION, call)


def pageable_copy(call: str) -> AcceleratorError:
    """Return the error for a copy that would be captured, with memory of the host that is not page-locked.

    The text begins with that of torch, which programs look for.

    Args:
        call: The name of the call in the error.
    """
    return AcceleratorError(
        Status.STREAM_CAPTURE_UNSUPPORTED,
        call,
        "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned: page-lock "
        "the array of the host by tcuda.memory.empty_pinned() or tcuda.memory.pin().",
    )


def require_no_capture(
    call: str, *, stream: int | None = None, device: int | None = None, event: int | None = None
) -> None:
    """Refuse ``call`` if the call would invalidate a capture.

    Args:
        call: The name of the call in the error.
        stream: The handle of the stream that the call synchronizes or queries.
        device: The device that the call synchronizes.
        event: For a call that synchronizes or queries an event, the number of the capture in which the event was
            recorded.

    Raises:
        AcceleratorError: The call would invalidate a capture (900, or 907 for an event). The capture goes on.
    """
    if event is not None and any(capture.number == event for capture in captures):
        raise AcceleratorError(Status.CAPTURED_EVENT, call)
    invalidates = any(capture.forbids_unsafe_calls() or capture.device == device for capture in captures)
    if invalidates or (stream is not None and capture_on(stream) is not None):
        raise AcceleratorError(Status.STREAM_CAPTURE_UNSUPPORTED, call)
