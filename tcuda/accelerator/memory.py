"""The memory of the accelerator (``torch.accelerator.memory``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda import memory
from tcuda._base.public_names import public_names
from tcuda._process.lazy import is_initialized
from tcuda.memory import empty_cache, empty_host_cache

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]
__dir__ = public_names(__name__)


def memory_stats(device_index: DeviceArgument = None, /) -> dict[str, Any]:
    """Return all statistics of the allocator on a device (``torch.accelerator.memory_stats``).

    See :func:`tcuda.memory_stats`.

    Args:
        device_index: The device; the current device if None.

    Raises:
        RuntimeError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> x = xp.zeros(1000, dtype="float32")
        >>> tcuda.accelerator.memory_stats()["allocated_bytes.all.current"] == tcuda.memory_allocated()
        True
    """
    return memory.memory_stats(device_index)


def memory_allocated(device_index: DeviceArgument = None, /) -> int:
    """Return the memory of arrays on a device in bytes (``torch.accelerator.memory_allocated``).

    Args:
        device_index: The device; the current device if None.

    Raises:
        RuntimeError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> before = tcuda.accelerator.memory_allocated()
        >>> x = xp.zeros(1000, dtype="float32")
        >>> tcuda.accelerator.memory_allocated() - before  # bytes
        4096
    """
    return memory.memory_allocated(device_index)


def max_memory_allocated(device_index: DeviceArgument = None, /) -> int:
    """Return the peak of :func:`memory_allocated` in bytes (``torch.accelerator.max_memory_allocated``).

    Args:
        device_index: The device; the current device if None.

    Raises:
        RuntimeError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> tcuda.accelerator.max_memory_allocated() >= tcuda.accelerator.memory_allocated()
        True
    """
    return memory.max_memory_allocated(device_index)


def memory_reserved(device_index: DeviceArgument = None, /) -> int:
    """Return the memory that the allocator holds on a device in bytes (``torch.accelerator.memory_reserved``).

    Args:
        device_index: The device; the current device if None.

    Raises:
        RuntimeError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> tcuda.accelerator.memory_reserved() >= tcuda.accelerator.memory_allocated()
        True
    """
    return memory.memory_reserved(device_index)


def max_memory_reserved(device_index: DeviceArgument = None, /) -> int:
    """Return the peak of :func:`memory_reserved` in bytes (``torch.accelerator.max_memory_reserved``).

    Args:
        device_index: The device; the current device if None.

    Raises:
        RuntimeError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> tcuda.accelerator.max_memory_reserved() >= tcuda.accelerator.memory_reserved()
        True
    """
    return memory.max_memory_reserved(device_index)


def reset_accumulated_memory_stats(device_index: DeviceArgument = None, /) -> None:
    """Set the sums and counts of a device to 0 (``torch.accelerator.reset_accumulated_memory_stats``).

    Before tcuda is initialised, the call does nothing.

    Args:
        device_index: The device; the current device if None.

    Raises:
        RuntimeError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> x = xp.ones(3)
        >>> tcuda.accelerator.reset_accumulated_memory_stats()
        >>> tcuda.accelerator.memory_stats()["allocation.all.allocated"]
        0
    """
    if is_initialized():
        memory.reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index: DeviceArgument = None, /) -> None:
    """Set every peak of a device to its current value (``torch.accelerator.reset_peak_memory_stats``).

    Before tcuda is initialised, the call does nothing.

    Args:
        device_index: The device; the current device if None.

    Raises:
        RuntimeError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> tcuda.accelerator.reset_peak_memory_stats()
        >>> tcuda.accelerator.max_memory_allocated() == tcuda.accelerator.memory_allocated()
        True
    """
    if is_initialized():
        memory.reset_peak_memory_stats(device_index)


def get_memory_info(device_index: DeviceArgument = None, /) -> tuple[int, int]:
    """Return the free and the total memory of a device in bytes (``torch.accelerator.get_memory_info``).

    Args:
        device_index: The device; the current device if None or a negative integer.

    Raises:
        AcceleratorError: The device does not exist.
        ValueError: ``device_index`` is not a CUDA device.

    Example:
        >>> free, total = tcuda.accelerator.get_memory_info()  # bytes
        >>> 0 < free <= total
        True
    """
    return memory.mem_get_info(device_index)
