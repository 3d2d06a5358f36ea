"""Arguments that name a stream of any library: the ``cudaStream_t`` of the stream, and its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._errors import AcceleratorError
from tcuda._process.lazy import backend, cuda
from tcuda._status import Status

if TYPE_CHECKING:
    from tcuda._backend.streams import CurrentStream


def handle_and_device(stream: Any) -> tuple[int, int]:
    """Return the handle of ``stream`` and the index of its device.

    Args:
        stream: A stream of tcuda, CuPy or PyTorch, or an object with ``__cuda_stream__``. The device of such an object
            is taken to be the current device, because the object does not name its device.

    Raises:
        RuntimeError: ``stream`` is not a stream.
    """
    try:
        return stream.cuda_stream, stream.device_index
    except AttributeError:
        pass
    if hasattr(stream, "__cuda_stream__"):
        _, handle = stream.__cuda_stream__()
    else:
        handle = getattr(stream, "ptr", None)  # CuPy before 14
    if not isinstance(handle, int):
        raise RuntimeError(
            "expected stream to be a torch.Stream or torch.cuda.Stream object, or rather a stream of tcuda, CuPy or "
            f"a library that knows __cuda_stream__; got {stream!r}"
        )
    index = getattr(stream, "device_id", -1)  # CuPy: -1 for default and foreign streams
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
