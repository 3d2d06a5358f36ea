"""Arguments that name a stream of any library: the ``cudaStream_t`` of the stream, and its device."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from tcuda._backend.streams import CurrentStream
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import STREAM_PER_THREAD


@runtime_checkable
class SupportsCudaStream(Protocol):
    """A stream of any library that follows the protocol ``__cuda_stream__``.

    ``tcuda.Stream`` follows the protocol, and so do the streams of CuPy 14, numba and cuda.core.

    Example:
        >>> class MyStream:
        ...     def __init__(self, handle: int) -> None:
        ...         self.handle = handle
        ...
        ...     def __cuda_stream__(self) -> tuple[int, int]:
        ...         return 0, self.handle  # the version of the protocol, and the cudaStream_t
        >>> side = tcuda.Stream()
        >>> with tcuda.stream(MyStream(side.cuda_stream)):
        ...     tcuda.current_stream() == side
        True
    """

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return 0, the version of the protocol, and the ``cudaStream_t``."""


class TorchStream(Protocol):
    """A stream with PyTorch's names for the handle and the device, such as ``torch.cuda.Stream``.

    Attributes:
        cuda_stream: The ``cudaStream_t``.
        device_index: The index of the device of the stream.
    """

    @property
    def cuda_stream(self) -> int: ...
    @property
    def device_index(self) -> int: ...


StreamLike: TypeAlias = SupportsCudaStream | TorchStream | CurrentStream
"""A stream of any library: the type of every argument of tcuda that takes a stream of another library.

Example:
    >>> def wait_for(stream: tcuda.streams.StreamLike) -> None:
    ...     tcuda.current_stream().wait_stream(stream)
    >>> wait_for(tcuda.Stream())
    >>> wait_for(xp.cuda.Stream())
"""


def handle_and_device(stream: StreamLike) -> tuple[int, int]:
    """Return the handle of ``stream`` and the index of its device.

    Args:
        stream: A stream of tcuda, CuPy, PyTorch or cuda.core, or an object with ``__cuda_stream__``. The device of an
            object that does not name its device is taken to be the current device.

    Raises:
        RuntimeError: ``stream`` is not a stream.
    """
    try:
        return stream.cuda_stream, stream.device_index  # type: ignore[union-attr]
    except AttributeError:
        pass
    handle = None
    if hasattr(stream, "__cuda_stream__"):
        _, handle = stream.__cuda_stream__()
    elif hasattr(stream, "wait_event") or not hasattr(stream, "record"):  # CuPy before 14; its events have `ptr` too
        handle = getattr(stream, "ptr", None)
    if not isinstance(handle, int):
        raise RuntimeError(
            "expected stream to be a torch.Stream or torch.cuda.Stream object, or rather a stream of tcuda, CuPy or "
            f"a library that knows __cuda_stream__; got {stream!r}"
        )
    index = getattr(stream, "device_id", -1)  # CuPy: -1 for default and foreign streams
    if index < 0 and handle > STREAM_PER_THREAD:  # a default stream is that of the current device
        index = getattr(getattr(stream, "device", None), "device_id", -1)  # cuda.core
    return handle, index if index >= 0 else cuda.getDevice()


def is_complete(status: int, call: str, handle: int) -> bool:
    """Return whether the ``status`` of a query says that the work is complete.

    Raises:
        AcceleratorError: The status is neither success nor ``cudaErrorNotReady``.
    """
    if status == 0:
        return True
    if status == Status.NOT_READY:
        return False
    raise AcceleratorError(status, f"{call}({handle:#x})")


def make_current(stream: CurrentStream) -> None:
    """Make ``stream`` the current stream of this thread, and its device the current device."""
    if cuda.getDevice() != stream.device_id:
        cuda.setDevice(stream.device_id)
    # CuPy compares default streams by identity, so CuPy gets its own object for them.
    default = backend.default_stream
    backend.use_stream(default if stream.ptr == default.ptr else stream)
