"""The choice of the current device, the wait for the work of a device, and the free memory of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._process.captures import captures, require_no_capture
from tcuda._process.device_rules import device_count
from tcuda._process.devices import _get_device_index, exchange_device
from tcuda._process.lazy import cuda

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument


def is_available() -> bool:
    """Return whether tcuda can use a device (``torch.cuda.is_available``).

    If no device exists, the result is False and no error is raised. The call creates no context, so a process may
    still fork afterwards.

    Example:
        >>> tcuda.is_available()
        True
    """
    return device_count() > 0


def current_device() -> int:
    """Return the index of the current device (``cudaGetDevice``).

    Example:
        >>> tcuda.current_device()
        0
    """
    return cuda.getDevice()


def set_device(device: DeviceArgument) -> None:
    """Make ``device`` this thread's current device (``torch.cuda.set_device``, ``cudaSetDevice``).

    Prefer the context manager :class:`device` or the environment variable ``CUDA_VISIBLE_DEVICES``.

    Args:
        device: The device; nothing happens if ``device`` is a negative integer.

    Raises:
        ValueError: ``device`` has no index.
        AcceleratorError: ``device`` does not exist.

    Example:
        >>> last = tcuda.device_count() - 1
        >>> tcuda.set_device(last)
        >>> tcuda.current_device() == last
        True
        >>> tcuda.set_device(0)
    """
    index = device if type(device) is int else _get_device_index(device)
    if index >= 0:
        cuda.setDevice(index)


def synchronize(device: DeviceArgument = None) -> None:
    """Wait until all work on all streams of ``device`` is complete (``torch.cuda.synchronize``).

    The CUDA function is ``cudaDeviceSynchronize``.

    Args:
        device: The device; the current device if None or a negative integer.

    Raises:
        AcceleratorError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.ones(1000).sum()  # queues the work
        >>> tcuda.synchronize()  # waits for the work
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
        device: The device; the current device if None or a negative integer.

    Raises:
        AcceleratorError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> free, total = tcuda.mem_get_info()  # bytes
        >>> 0 < free <= total
        True
    """
    if device is None:
        return cuda.memGetInfo()
    previous = exchange_device(_get_device_index(device, optional=True))
    try:
        return cuda.memGetInfo()
    finally:
        exchange_device(previous)
