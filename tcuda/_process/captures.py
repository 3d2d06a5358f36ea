"""The captures of CUDA graphs that are in progress, for whoever must know of them.

Most calls that CUDA forbids during a capture invalidate the capture. The capture then ends in an error that does not
name the call. So the functions of tcuda that make such calls ask this module first, which refuses the call, and the
capture goes on.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tcuda._errors import AcceleratorError
from tcuda._process.lazy import cuda
from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED, CAPTURE_STATUS_NONE
from tcuda._status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._core import PhiloxState


class Capture:
    """A capture that a :class:`tcuda.CUDAGraph` has begun.

    Args:
        graph: The :class:`tcuda.CUDAGraph`.
        stream: The handle of the stream on which it was begun.
        device: The device of that stream.
        number: The number that CUDA gave it.
        mode: Its ``CAPTURE_...`` mode.

    Attributes:
        states: What the kernels read in place of each generator's state that draw in the capture.
        events: The external events that the graph records or waits for, which every launch of the graph refers to.
    """

    def __init__(self, graph: Any, stream: int, device: int, number: int, mode: int) -> None:
        self.graph = graph
        self.stream = stream
        self.device = device
        self.number = number
        self.states: dict[PhiloxState, Any] = {}
        self.events: list[Any] = []
        self._mode = mode
        self._thread = threading.get_ident()

    def forbids_unsafe_calls(self) -> bool:
        """Return whether this thread must not wait for, nor ask about, any stream (``cudaStreamCaptureMode``)."""
        if self._mode == CAPTURE_GLOBAL:
            return True
        return self._mode != CAPTURE_RELAXED and self._thread == threading.get_ident()

    def state_for(self, state: PhiloxState, make: Callable[[], Any]) -> Any:
        """Return what the kernels read in place of ``state``, which ``make`` makes the first time."""
        if state not in self.states:
            self.states[state] = make()
        return self.states[state]


captures: list[Capture] = []
"""Those in progress. Empty nearly always, which is all that calls on a fast path look at."""


def capture_on(stream: int) -> Capture | None:
    """Return the capture that the stream takes part in, None if there is none that tcuda has begun."""
    if not captures:
        return None
    status, number = cuda.streamGetCaptureInfo(stream)
    if status == CAPTURE_STATUS_NONE:
        return None
    return next((capture for capture in captures if capture.number == number), None)


def number_on(stream: int) -> int:
    """Return the number of the capture that the stream takes part in, 0 if there is none that tcuda has begun."""
    capture = capture_on(stream)
    return 0 if capture is None else capture.number


def require_same_capture(call: str, stream: int, number: int) -> None:
    """Refuse ``call``, which lets a capturing stream wait for what is not of its capture.

    A stream that does not capture may wait: so it comes to take part.

    Args:
        call: What to name in the error.
        stream: The handle of the stream that waits.
        number: The number of the capture in which there is what it waits for; 0, or that of an ended one, for none.

    Raises:
        AcceleratorError: The wait would invalidate the capture of ``stream`` (905), or both captures (902). The
            captures go on.
    """
    own = number_on(stream)
    if own not in (0, number):
        others = any(capture.number == number for capture in captures)
        raise AcceleratorError(Status.STREAM_CAPTURE_MERGE if others else Status.STREAM_CAPTURE_ISOLATION, call)


def require_no_capture(
    call: str, *, stream: int | None = None, device: int | None = None, event: int | None = None
) -> None:
    """Refuse ``call`` where it would invalidate a capture.

    Args:
        call: What to name in the error.
        stream: The handle of the stream that it waits for or asks about.
        device: The device that it waits for.
        event: The number of the capture in which the event was recorded that it waits for or asks about.

    Raises:
        AcceleratorError: It would (900, or 907 of an event), but the capture goes on.
    """
    if event is not None and any(capture.number == event for capture in captures):
        raise AcceleratorError(Status.CAPTURED_EVENT, call)
    invalidates = any(capture.forbids_unsafe_calls() or capture.device == device for capture in captures)
    if invalidates or (stream is not None and capture_on(stream) is not None):
        raise AcceleratorError(Status.STREAM_CAPTURE_UNSUPPORTED, call)
