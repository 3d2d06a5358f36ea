"""Device arguments of the functions over several devices, with torch's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.arguments import several
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._process.device_rules import device_count
from tcuda._process.devices import _get_device_index

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda._process.devices import DeviceArgument


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
    return [
        device if type(device) is int else device_index(device)
        for device in several(devices, "devices", "a sequence of devices")
    ]


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
