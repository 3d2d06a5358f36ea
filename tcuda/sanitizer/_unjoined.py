"""The words for a capture that ended without a wait for the work of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.cells import shown
from tcuda._base.errors import AcceleratorError
from tcuda.sanitizer._advice import line_of, wait_of
from tcuda.sanitizer._stacks import Frame
from tcuda.sanitizer._stream_names import stream_names

if TYPE_CHECKING:
    from tcuda._base.errors import UnjoinedStream


def with_streams(error: AcceleratorError, origin: tuple[int, int]) -> AcceleratorError:
    """Return an error that names the streams that were not joined; ``error`` itself if the runtime does not know them.

    Args:
        error: The error of the end of a capture.
        origin: The device and the handle of the stream on which the capture began.
    """
    if not error._unjoined:
        return error
    sentences = [_sentence(stream, origin) for stream in error._unjoined]
    return AcceleratorError(error.error_code, error.call, " ".join(sentences))


def _sentence(stream: UnjoinedStream, origin: tuple[int, int]) -> str:
    names = stream_names(origin, (stream.device, stream.handle))
    assert names.current is not None
    assert names.previous is not None
    name = f"`{names.previous.text}`" if names.previous.is_code else names.previous.text
    place = stream.place
    where = "" if place is None else f"; its last call is in {line_of(Frame('', shown(place.filename), place.line))}"
    call = wait_of(names.current, names.previous)
    return f"The capture does not wait for the work of {name}{where}. Call `{call}` before the capture ends."
