"""Arguments of the functions over several devices: arrays and devices, with torch's errors."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import a_kind, several
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.device_rules import device_count
from tcuda._process.devices import _get_device_index
from tcuda._process.lazy import backend

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from tcuda._process.devices import DeviceArgument

HOST = -1
"""The index that stands for the host in place of a device."""


@functools.cache
def host() -> ModuleType:
    """Return the module of the copies between the host and a device; `import tcuda` imports no NumPy."""
    from tcuda.comm import _host

    return _host


def place_of(array: Any, name: str) -> int:
    """Return the index of the device of ``array``, :data:`HOST` for a NumPy array.

    Args:
        array: The argument.
        name: The name of the argument in the error.

    Raises:
        TypeError: ``array`` is neither an array of the array library nor a NumPy array.
    """
    transfers = backend.transfers()
    if isinstance(array, transfers.array):
        return int(array.data.device_id)
    import numpy as np  # here, because `import tcuda` imports no NumPy

    if isinstance(array, np.ndarray):
        return HOST
    raise TypeError(
        f"{name} must be an array of {transfers.xp.__name__.partition('.')[0]} or numpy; got {a_kind(array)}."
    )


def place_of_output(array: Any, number: int) -> int:
    """Return the index of the device of ``array``, the element ``number`` of the argument ``out``.

    Raises:
        RuntimeError: ``array`` is a NumPy array.
        TypeError: ``array`` is neither an array of the array library nor a NumPy array.
    """
    place = place_of(array, f"out[{number}]")
    if place == HOST:
        raise RuntimeError(
            f"Expected all output tensors to be CUDA tensors, but output tensor at index {number} has device "
            f"'{place_text(place)}'"
        )
    return place


def place_text(place: int) -> str:
    """Return ``"cpu"`` or ``"cuda:1"`` for a message."""
    return "cpu" if place == HOST else f"cuda:{place}"


def shape_text(shape: Iterable[int]) -> str:
    """Return a shape in torch's spelling for a message, such as ``"[3, 4]"``."""
    return str(list(shape))


def arrays_text(arrays: Any) -> str:
    """Return a text for ``arrays`` in a message.

    The text has no elements, because a read of the elements would wait for the device.
    """
    try:
        items = list(arrays)
    except TypeError:
        return _array_text(arrays)
    return f"[{', '.join(map(_array_text, items))}]"


def _array_text(array: Any) -> str:
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    return repr(array) if shape is None or dtype is None else f"{dtype}{shape_text(shape)}"


def axis_of(dim: int, ndim: int) -> int:
    """Return the axis that ``dim`` means, counted from 0; an array without axes counts as an array with one.

    Raises:
        IndexError: ``dim`` is out of range.
        TypeError: ``dim`` is not an integer.
    """
    try:
        dim = operator.index(dim)
    except TypeError:
        raise TypeError(f"dim must be an integer; got {a_kind(dim)}.") from None
    axes = max(ndim, 1)
    if not -axes <= dim < axes:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-axes}, {axes - 1}], but got {dim})")
    return dim % axes


def device_index(device: DeviceArgument, *, optional: bool = False) -> int:
    """Return the index of ``device``; a negative integer is returned unchanged.

    Args:
        device: The device.
        optional: Whether None means the current device.

    Raises:
        ValueError: ``device`` is the host, or names no device.
        RuntimeError: ``device`` is a text that names no device.
    """
    if type(device) is int:
        return device
    if is_host(device):
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    return _get_device_index(device, optional)


def device_indices(devices: Iterable[DeviceArgument]) -> list[int]:
    """Return the index of each of ``devices``; negative integers are returned unchanged.

    Raises:
        TypeError: ``devices`` is not iterable.
        ValueError: One of ``devices`` is the host, or names no device.
        RuntimeError: One of ``devices`` is a text that names no device.
    """
    if not isinstance(devices, (list, tuple)):
        devices = several(devices, "devices", "a sequence of devices")
    return [device if type(device) is int else device_index(device) for device in devices]


def is_host(device: DeviceArgument) -> bool:
    """Return whether ``device`` names the host: ``"cpu"``, or a device of this type."""
    return (device.partition(":")[0] if isinstance(device, str) else getattr(device, "type", None)) == "cpu"


def require_existing(index: int) -> None:
    """Refuse an index that no device has.

    Raises:
        RuntimeError: ``index`` is negative.
        AcceleratorError: ``index`` is too large (101).
    """
    if index < 0:
        raise RuntimeError(f"Expected non-negative device index, but got {index}")
    if index >= device_count():
        raise AcceleratorError(Status.INVALID_DEVICE, f"cudaSetDevice({index})")
