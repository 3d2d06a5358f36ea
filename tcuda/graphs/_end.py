"""The end of a capture, whose error names the streams that were not joined."""

from __future__ import annotations

from tcuda._base.errors import AcceleratorError
from tcuda._process.lazy import cuda


def end_capture(stream: int) -> int:
    """End the capture that began on ``stream`` of the current device, and return the graph.

    Raises:
        AcceleratorError: The capture cannot be ended. If a stream was not joined (904), emulated devices know the
            stream and the line of its last call, and the error names both.
    """
    try:
        return cuda.streamEndCapture(stream)
    except AcceleratorError as error:
        if not error._unjoined:
            raise
        from tcuda._sanitizer._unjoined import with_streams  # here, because few programs need the words

        raise with_streams(error, (cuda.getDevice(), stream)) from None


__all__ = ["end_capture"]
