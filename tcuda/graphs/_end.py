"""The end of a capture, whose error names the streams that were not joined."""

from __future__ import annotations

from tcuda._base.errors import AcceleratorError
from tcuda._base.wings import has_wing, wing_module
from tcuda._process.lazy import cuda


def end_capture(stream: int) -> int:
    """End the capture that began on ``stream`` of the current device, and return the graph.

    Raises:
        AcceleratorError: The capture cannot be ended; see :func:`with_unjoined_streams`.
    """
    try:
        return cuda.streamEndCapture(stream)
    except AcceleratorError as error:
        # A local variable with the error would be a cycle, which keeps the arrays of all callers until it is collected.
        raise with_unjoined_streams(error, stream) from None


def with_unjoined_streams(error: AcceleratorError, stream: int) -> AcceleratorError:
    """Return the error for the end of the capture that began on ``stream`` of the current device.

    If a stream was not joined (904), emulated devices know the stream and the line of its last call, and the returned
    error names both. Any other error is returned as it is.
    """
    if not error._unjoined:
        return error
    if not has_wing("sanitizer"):
        return error
    named: AcceleratorError = wing_module("sanitizer._unjoined").with_streams(error, (cuda.getDevice(), stream))
    return named


__all__ = ["end_capture", "with_unjoined_streams"]
