"""The bodies of conditional nodes that a graph captures at the moment, one in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.errors import AcceleratorError
from tcuda._base.scope import undone_by
from tcuda._base.statuses import Status
from tcuda._process.captures import capture_on
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import CAPTURE_STATUS_INVALIDATED
from tcuda.graphs._body import Body, flag_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcuda._process.captures import Capture


class OpenBodies:
    """The bodies that have begun and not ended, the innermost last."""

    def __init__(self) -> None:
        self._bodies: list[Body] = []
        self._changing = False  # whether the capture of the innermost body is beginning or ending

    def __len__(self) -> int:
        return len(self._bodies)

    def _undo_change(self) -> None:
        """Drop the body that failed to begin or to end, and note that the graph lacks the body."""
        if self._changing:
            self.abandon_innermost()
        self._changing = False

    @undone_by(_undo_change)
    def begin(self, whole: Capture | None, kind: int, flag: Any, kinds: Mapping[str, int], call: str) -> None:
        """Add a conditional node, and begin to capture its body.

        Args:
            whole: The capture of the graph; None if the graph is not being captured.
            kind: ``CONDITIONAL_IF`` or ``CONDITIONAL_WHILE``.
            flag: An array with one element.
            kinds: The kinds of elements that the flag may have; see :func:`flag_of`.
            call: The name of the call in errors.

        Raises:
            AcceleratorError: A call has invalidated the capture (901).
            RuntimeError: The current stream does not take part in the innermost capture, or the flag has not one
                element of one of the kinds on the current device.
            TypeError: ``flag`` is not an array of a device.
        """
        inner = self._bodies[-1].capture if self._bodies else whole
        stream = backend.current_stream().ptr
        if cuda.streamGetCaptureInfo(stream)[0] == CAPTURE_STATUS_INVALIDATED:
            raise AcceleratorError(Status.STREAM_CAPTURE_INVALIDATED, call)
        if whole is None or inner is None or capture_on(stream) is not inner:
            raise RuntimeError(
                f"capture_begin() must be called before {call}, and the current stream must take part in the capture"
                + (" of the innermost body." if self._bodies else ".")
            )
        body = Body(whole, kind, flag_of(flag, kinds, call))
        self._changing = True
        self._bodies.append(body)
        body.begin(stream)
        self._changing = False

    @undone_by(_undo_change)
    def end(self) -> None:
        """End the capture of the innermost body.

        Raises:
            AcceleratorError: A call has invalidated the capture of the body (901), or a stream that took part in the
                body was not joined again (904).
            RuntimeError: No body is being captured, or the current stream is not the stream of the body.
        """
        if not self._bodies:
            raise RuntimeError(
                "end_capture_to_conditional_node() called before begin_capture_to_if_node(): no body is being captured."
            )
        body = self._bodies[-1]
        if backend.current_stream().ptr != body.stream:
            raise RuntimeError(
                f"The capture of a body must end on the stream that its begin has made current, {body.stream:#x}; "
                f"{backend.current_stream().ptr:#x} is current."
            )
        self._changing = True
        body.end()
        self._bodies.pop()
        self._changing = False

    def abandon_innermost(self) -> None:
        """End the capture of the innermost body in any state. The capture of the graph then fails at its end."""
        if self._bodies:
            self._bodies[-1].abandon()
            self._bodies.pop()

    def abandon(self) -> None:
        """End the captures of all bodies in any state. The capture of the graph then fails at its end."""
        while self._bodies:
            self.abandon_innermost()
        self._changing = False
