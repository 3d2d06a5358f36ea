"""The end of a capture, whose error names the streams that were not joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tcuda._base.errors import AcceleratorError
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def end_capture(stream: int, end: Callable[..., T], *arguments: Any) -> T:
    """End the capture that began on ``stream`` of the current device by ``end(*arguments)``, and return the result.

    Raises:
        AcceleratorError: The capture cannot be ended. If a stream was not joined (904), emulated devices know the
            stream and the line of its last call, and the error names both.
    """
    try:
        return end(*arguments)
    except AcceleratorError as error:
        if not error._unjoined:
            raise
        from tcuda._sanitizer._unjoined import with_streams  # here, because few programs need the words

        raise with_streams(error, (cuda.getDevice(), stream)) from None


__all__ = ["end_capture"]
