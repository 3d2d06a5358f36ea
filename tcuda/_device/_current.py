"""The current device, and its state: whether its work is complete, and how much memory is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._process.captures import captures, require_no_capture
from tcuda._process.device_rules import device_count
from tcuda._process.devices import _get_device_index, exchange_device
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument


def is_available() -> bool:
    """Return whether there is a device to use; never raises for want of one (``torch.cuda.is_available``).

    Creates no context, so that a process may still fork afterwards.
    """
    return device_count() > 0


def current_device() -> int:
    """Return the index of the current device (``cudaGetDevice``)."""
    return cuda.getDevice()


def set_device(device: DeviceArgument) -> None:
    """Make ``device`` this thread's current device (``torch.cuda.set_device``, ``cudaSetDevice``).

    :class:`device` is to be preferred, or ``CUDA_VISIBLE_DEVICES``.

    Args:
        device: The device; nothing happens if it is a negative integer.

    Raises:
        ValueError: ``device`` names no index.
        AcceleratorError: There is no such device.
    """
    index = device if type(device) is int else _get_device_index(device)
    if index >= 0:
        cuda.setDevice(index)


def synchronize(device: DeviceArgument = None) -> None:
    """Wait for all work in all streams of ``device`` (``torch.cuda.synchronize``, ``cudaDeviceSynchronize``).

    Args:
        device: The device; the current one if None or a negative integer.
    """
    if captures:
        index = cuda.getDevice() if device is None else _get_device_index(device, optional=True)
        require_no_capture("tcuda.synchronize()", device=cuda.getDevice() if index < 0 else index)
    if device is None:
        cuda.deviceSynchronize()
        return
    previous = exchange_device(_get_device_index(device, optional=True))
    try:
        cuda.deviceSynchronize()
    finally:
        exchange_device(previous)


def mem_get_info(device: DeviceArgument = None) -> tuple[int, int]:
    """Return the free and the total memory of ``device`` in bytes (``torch.cuda.mem_get_info``, ``cudaMemGetInfo``).

    Args:
        device: The device; the current one if None or a negative integer.

    Raises:
        AcceleratorError: There is no such device.
    """
    previous = exchange_device(_get_device_index(device, optional=True))
    try:
        free, total = cuda.memGetInfo()
    finally:
        exchange_device(previous)
    return free, total
