"""What names a stream: a ``cudaStream_t`` and the device it is on, whichever library made it."""

from __future__ import annotations

from typing import Any

from tcuda._errors import AcceleratorError
from tcuda._lazy import cuda
from tcuda._status import Status


def handle_and_device(stream: Any) -> tuple[int, int]:
    """Return the handle of ``stream`` and the index of its device.

    Args:
        stream: A stream of tcuda, CuPy or PyTorch, or an object with ``__cuda_stream__``, which does not say its
            device: then it is taken to be of the current one.

    Raises:
        RuntimeError: It is no stream.
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
    """Return what the ``status`` of a query means.

    Raises:
        AcceleratorError: It is neither success nor ``cudaErrorNotReady``.
    """
    if status == 0:
        return True
    if status == Status.NOT_READY:
        return False
    raise AcceleratorError(status, f"{call}({handle:#x})")
