"""What the ledger counts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.ledger import ledger, ledger_if_any

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument


def memory_allocated(device: DeviceArgument = None) -> int:
    """Return the bytes that live arrays take up on ``device`` (``torch.cuda.memory_allocated``).

    Sizes count as they were handed out: rounded up to a multiple of 512 bytes by the native allocator.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    known = ledger_if_any()
    return 0 if known is None else known.allocated(resolve(device, OF_MEMORY))


def max_memory_allocated(device: DeviceArgument = None) -> int:
    """Return the most bytes that live arrays took up on ``device`` at a time (``torch.cuda.max_memory_allocated``).

    That is since the program began, or since :func:`reset_peak_memory_stats`. To measure a part of a program without
    disturbing others, use :func:`tcuda.memory.track`.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    known = ledger_if_any()
    return 0 if known is None else known.peak_allocated(resolve(device, OF_MEMORY))


def memory_reserved(device: DeviceArgument = None) -> int:
    """Return the bytes that the allocator holds on ``device``, in use or not (``torch.cuda.memory_reserved``).

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    known = ledger_if_any()
    return 0 if known is None else known.reserved(resolve(device, OF_MEMORY))


def max_memory_reserved(device: DeviceArgument = None) -> int:
    """Return the most bytes that the allocator held on ``device`` at a time (``torch.cuda.max_memory_reserved``).

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    known = ledger_if_any()
    return 0 if known is None else known.peak_reserved(resolve(device, OF_MEMORY))


def memory_cached(device: DeviceArgument = None) -> int:
    """Return :func:`memory_reserved`, of which it is the old name (``torch.cuda.memory_cached``)."""
    _warn("`tcuda.memory_cached` has been renamed to `tcuda.memory_reserved`")
    return memory_reserved(device)


def max_memory_cached(device: DeviceArgument = None) -> int:
    """Return :func:`max_memory_reserved`, of which it is the old name (``torch.cuda.max_memory_cached``)."""
    _warn("`tcuda.max_memory_cached` has been renamed to `tcuda.max_memory_reserved`")
    return max_memory_reserved(device)


def memory_stats(device: DeviceArgument = None) -> dict[str, Any]:
    """Return all that the allocator counts on ``device`` (``torch.cuda.memory_stats``).

    The keys are ``"<counter>.<pool>.<figure>"``: the counters ``allocated_bytes``, ``requested_bytes``,
    ``active_bytes``, ``reserved_bytes``, ``inactive_split_bytes``, ``allocation``, ``active``, ``segment`` and
    ``inactive_split``; the pools ``all``, ``large_pool`` and ``small_pool``; the figures ``current``, ``peak``,
    ``allocated`` and ``freed``. ``oversize_allocations`` and ``oversize_segments`` have no pools, and
    ``num_alloc_retries``, ``num_ooms``, ``num_sync_all_streams``, ``num_device_alloc``, ``num_device_free`` and
    ``max_split_size`` are single numbers. What each counts, and which sources know it, is in the guide to memory.

    Args:
        device: The device; None for the current one.

    Returns:
        The 122 numbers, in bytes or counts; empty before tcuda is initialised.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    known = ledger_if_any()
    return {} if known is None else known.statistics(resolve(device, OF_MEMORY))


def memory_stats_as_nested_dict(device: DeviceArgument = None) -> dict[str, Any]:
    """Return :func:`memory_stats` as dictionaries in dictionaries (``torch.cuda.memory_stats_as_nested_dict``).

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    nested: dict[str, Any] = {}
    for key, value in memory_stats(device).items():
        *path, figure = key.split(".")
        inner = nested
        for name in path:
            inner = inner.setdefault(name, {})
        inner[figure] = value
    return nested


def reset_peak_memory_stats(device: DeviceArgument = None) -> None:
    """Let every peak of :func:`memory_stats` begin at its current value (``torch.cuda.reset_peak_memory_stats``).

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    ledger().reset_peaks(resolve(device, OF_MEMORY))


def reset_accumulated_memory_stats(device: DeviceArgument = None) -> None:
    """Set the sums and counts of :func:`memory_stats` to 0 (``torch.cuda.reset_accumulated_memory_stats``).

    These are the figures ``allocated`` and ``freed``, and the numbers that begin with ``num_``.

    Args:
        device: The device; None for the current one.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    ledger().reset_accumulated(resolve(device, OF_MEMORY))


def reset_max_memory_allocated(device: DeviceArgument = None) -> None:
    """Call :func:`reset_peak_memory_stats`, which replaced it (``torch.cuda.reset_max_memory_allocated``)."""
    _warn(f"tcuda.reset_max_memory_allocated {_RESETS_ALL}")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: DeviceArgument = None) -> None:
    """Call :func:`reset_peak_memory_stats`, which replaced it (``torch.cuda.reset_max_memory_cached``)."""
    _warn(f"tcuda.reset_max_memory_cached {_RESETS_ALL}")
    reset_peak_memory_stats(device)


_RESETS_ALL = "now calls tcuda.reset_peak_memory_stats, which resets /all/ peak memory stats."


def _warn(text: str) -> None:
    warnings.warn(text, FutureWarning, stacklevel=3)
