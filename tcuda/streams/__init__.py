"""Streams and events (``torch.cuda.streams``)."""

from tcuda._base.public_names import public_names
from tcuda._process.streams import StreamLike, SupportsCudaStream
from tcuda.streams._current import (
    _sleep as _sleep,
)
from tcuda.streams._current import (
    current_stream as current_stream,
)
from tcuda.streams._current import (
    default_stream as default_stream,
)
from tcuda.streams._current import (
    get_stream_from_external as get_stream_from_external,
)
from tcuda.streams._current import (
    set_stream as set_stream,
)
from tcuda.streams._current import (
    stream as stream,
)
from tcuda.streams._event import Event
from tcuda.streams._green_context import GreenContext as GreenContext
from tcuda.streams._scope import StreamContext as StreamContext
from tcuda.streams._stream import ExternalStream, Stream

__all__ = ["Event", "ExternalStream", "Stream", "StreamLike", "SupportsCudaStream"]
__dir__ = public_names(__name__)
