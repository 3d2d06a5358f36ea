"""The scope in which a stream is current."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda import _core
from tcuda._process import scope_calls  # noqa: F401  # connects the scopes of the core with the runtime
from tcuda.streams._stream import Stream

if TYPE_CHECKING:
    from tcuda._backend.streams import CurrentStream


class StreamContext(_core.StreamScope):
    """Context manager that makes a stream current (``torch.cuda.StreamContext``).

    :func:`tcuda.stream` returns such a context manager. If the stream is of another device, that device is current in
    the block too. Blocks of ``with cupy_stream:`` and of :func:`tcuda.stream` nest in any order, because tcuda puts the
    stream on CuPy's own stack of current streams.

    A generator that pauses inside a block may be closed in another thread. The end of the block then changes nothing in
    that other thread. The thread that entered the block goes back to its earlier stream and device when that thread
    next enters or leaves a block of tcuda.

    Args:
        stream: The stream; nothing happens if ``stream`` is None.

    Raises:
        RuntimeError: ``stream`` is not a stream.

    Attributes:
        stream: The stream.

    Example:
        >>> side = tcuda.Stream()
        >>> scope = tcuda.StreamContext(side)
        >>> with scope:
        ...     tcuda.current_stream() == side
        True
        >>> scope.stream is side
        True
    """

    __slots__ = ("__weakref__",)

    def __init__(self, stream: CurrentStream | None) -> None:
        if stream is not None:
            try:
                stream.device_id  # noqa: B018  # PyTorch's streams lack device_id: tcuda.stream() accepts them
            except AttributeError:
                raise RuntimeError(
                    "expected stream to be a torch.Stream or torch.cuda.Stream object, or rather a stream of tcuda or "
                    f"CuPy; got {stream!r}"
                ) from None
        self.stream = stream

    @property
    def src_prev_stream(self) -> Stream | None:
        """The stream that was current at entry, on the device that was current at entry; None before an entry."""
        return _as_ours(self._source, self._source_device)

    @property
    def dst_prev_stream(self) -> Stream | None:
        """The stream that was current at entry on the device of ``stream``; None before an entry."""
        return None if self.stream is None else _as_ours(self._target, self.stream.device_id)

    def __repr__(self) -> str:
        return f"<tcuda.StreamContext of {self.stream}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamContext, (self.stream,)


def _as_ours(stream: CurrentStream | None, device_index: int) -> Stream | None:
    """Return a :class:`Stream` for the current stream of an array library; its default streams name no device."""
    if stream is None or isinstance(stream, Stream):
        return stream
    return Stream._wrap(stream.ptr, device_index)
