"""The scope in which a stream is current."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._process import scope_calls  # noqa: F401  # connects the scopes of the core with the runtime

if TYPE_CHECKING:
    from tcuda._backend import CurrentStream


class StreamContext(_core.StreamScope):
    """Context manager that makes a stream current (``torch.cuda.StreamContext``); :func:`tcuda.stream` makes one.

    If the stream is of another device, that device is current in the block too. Inside it, ``with cupy_stream:`` and
    further ``tcuda.stream`` nest as they should: the stream is on CuPy's own stack of current streams.

    A block that another thread leaves, as the generator does that is closed there, changes nothing in that thread. The
    thread that entered it goes back when it next enters or leaves a block of tcuda's.

    Args:
        stream: The stream; nothing happens if it is None.

    Raises:
        RuntimeError: ``stream`` is no stream.

    Attributes:
        stream: The stream.
        src_prev_stream: What was current on the device that was current at entry.
        dst_prev_stream: What was current on the device of the stream.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, stream: CurrentStream | None) -> None:
        if stream is not None:
            try:
                stream.device_id  # noqa: B018  # which a stream of PyTorch's lacks: tcuda.stream() takes those
            except AttributeError:
                raise RuntimeError(
                    "expected stream to be a torch.Stream or torch.cuda.Stream object, or rather a stream of tcuda or "
                    f"CuPy; got {stream!r}"
                ) from None
        self.stream = stream

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamContext, (self.stream,)
