"""The devices and the current streams of the accelerator."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda import _device, streams
from tcuda._base.warnings import stacklevel
from tcuda._process.device_rules import device_count, existing_device
from tcuda._process.devices import _get_device_index
from tcuda._process.lazy import is_initialized

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument
    from tcuda._process.streams import StreamLike
    from tcuda.streams import Stream

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "get_device_capability",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

_DTYPES = "? b h i l B H I L e f d F D"
"""NumPy's characters for the dtypes that CuPy's arrays can have."""


class _Accelerator(NamedTuple):
    """The kind of device, as a ``torch.device`` without an index."""

    type: str
    index: None = None  # type: ignore[assignment]  # hides tuple.index, which no program needs here

    def __str__(self) -> str:
        return self.type

    def __repr__(self) -> str:
        return f"device(type={self.type!r})"


def is_available() -> bool:
    """Return whether a device can be used (``torch.accelerator.is_available``).

    Example:
        >>> tcuda.accelerator.is_available()
        True
    """
    return _device.is_available()


def current_accelerator(check_available: bool = False) -> _Accelerator | None:
    """Return the kind of device that tcuda is for: always CUDA (``torch.accelerator.current_accelerator``).

    All functions of tcuda accept the result as a device, which is then the current device.

    Args:
        check_available: Whether the result is None if there is no device.

    Example:
        >>> accelerator = tcuda.accelerator.current_accelerator()
        >>> accelerator, accelerator.type
        (device(type='cuda'), 'cuda')
    """
    return None if check_available and not is_available() else _Accelerator("cuda")


def current_device_index() -> int:
    """Return the index of the current device (``torch.accelerator.current_device_index``).

    Example:
        >>> tcuda.accelerator.current_device_index()
        0
    """
    return _device.current_device()


def current_device_idx() -> int:
    """Return :func:`current_device_index`. Deprecated, as in torch.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore", FutureWarning)
        >>> tcuda.accelerator.current_device_idx()
        0
    """
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=stacklevel())
    return current_device_index()


def set_device_index(device: DeviceArgument, /) -> None:
    """Make ``device`` this thread's current device (``torch.accelerator.set_device_index``).

    Args:
        device: The device; nothing happens if ``device`` is a negative integer.

    Raises:
        ValueError: ``device`` has no index, or is not a CUDA device.
        AcceleratorError: ``device`` does not exist.

    Example:
        >>> tcuda.accelerator.set_device_index(1)
        >>> tcuda.accelerator.current_device_index()
        1
        >>> tcuda.accelerator.set_device_index("cuda:0")
    """
    _device.set_device(device)


def set_device_idx(device: DeviceArgument, /) -> None:
    """Call :func:`set_device_index`. Deprecated, as in torch.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore", FutureWarning)
        >>> tcuda.accelerator.set_device_idx(0)
    """
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=stacklevel())
    set_device_index(device)


def get_device_capability(device: DeviceArgument = None, /) -> dict[str, Any]:
    """Return what arrays a device can have (``torch.accelerator.get_device_capability``).

    The result is not the compute capability, which :func:`tcuda.get_device_capability` returns.

    Args:
        device: The device; the current device if None.

    Returns:
        A dictionary with ``"supported_dtypes"``, the set of the dtypes of NumPy that arrays of the device can have.

    Raises:
        ValueError: ``device`` is not a CUDA device.
        AcceleratorError: ``device`` does not exist.

    Example:
        >>> import numpy as np
        >>> np.dtype("float16") in tcuda.accelerator.get_device_capability()["supported_dtypes"]
        True
    """
    import numpy as np

    existing_device(device)
    return {"supported_dtypes": {np.dtype(character) for character in _DTYPES.split()}}


def current_stream(device: DeviceArgument = None, /) -> Stream:
    """Return this thread's current stream of ``device`` (``torch.accelerator.current_stream``).

    Args:
        device: The device; the current device if None or a negative integer.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> side = tcuda.Stream()
        >>> with side:
        ...     tcuda.accelerator.current_stream() is side
        True
    """
    return streams.current_stream(device)


def set_stream(stream: StreamLike) -> None:
    """Make ``stream`` this thread's current stream, and its device the current one (``torch.accelerator.set_stream``).

    Args:
        stream: A stream of tcuda, of CuPy, or of any library with ``__cuda_stream__``.

    Raises:
        RuntimeError: ``stream`` is not a stream.

    Example:
        >>> before, side = tcuda.accelerator.current_stream(), tcuda.Stream()
        >>> tcuda.accelerator.set_stream(side)
        >>> tcuda.accelerator.current_stream() == side
        True
        >>> tcuda.accelerator.set_stream(before)
    """
    streams.set_stream(stream)


def synchronize(device: DeviceArgument = None, /) -> None:
    """Wait until all work on all streams of ``device`` is complete (``torch.accelerator.synchronize``).

    Before tcuda is initialised, there is no such work, and the call does nothing.

    Args:
        device: The device; the current device if None or a negative integer.

    Raises:
        ValueError: ``device`` is not a CUDA device.
        AcceleratorError: ``device`` does not exist.

    Example:
        >>> x = xp.ones(1000).sum()  # queues the work
        >>> tcuda.accelerator.synchronize()  # waits for the work
    """
    if is_initialized():
        _device.synchronize(device)
    elif device is not None:
        _get_device_index(device, optional=True)


class device_index(_device.device):
    """Context manager that makes a device the current one (``torch.accelerator.device_index``).

    Args:
        device: The device to select; nothing happens if ``device`` is None or a negative integer.

    Raises:
        AcceleratorError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Attributes:
        idx: The index of the selected device; -1 for None.
        prev_idx: The index of the device that was current at the last entry.

    Example:
        >>> with tcuda.accelerator.device_index(1):
        ...     x = xp.zeros(3)
        >>> x.device.id, tcuda.accelerator.current_device_index()
        (1, 0)
    """

    __slots__ = ()

    def __init__(self, device: DeviceArgument, /) -> None:
        super().__init__(-1 if device is None else device)
