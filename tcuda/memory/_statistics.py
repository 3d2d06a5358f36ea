"""The statistics of the ledger."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tcuda._process import scopes
from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger, ledger_if_any

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument

FIGURES = ("current", "peak", "allocated", "freed")
_BY_POOL = "reserved_bytes_by_private_pools"


def memory_allocated(device: DeviceArgument = None) -> int:
    """Return the bytes of all live arrays on ``device`` (``torch.cuda.memory_allocated``).

    The sizes of blocks are counted. The native allocator rounds the size of a block up to a multiple of 512 bytes.

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> before = tcuda.memory_allocated()
        >>> x = xp.zeros(1000, dtype="float32")
        >>> tcuda.memory_allocated() - before  # 4000 bytes, rounded up
        4096
    """
    known = ledger_if_any()
    if known is None:
        return 0
    return known.allocated(cuda.getDevice() if device is None else resolve(device, OF_MEMORY))


def max_memory_allocated(device: DeviceArgument = None) -> int:
    """Return the peak of :func:`memory_allocated` on ``device``, in bytes (``torch.cuda.max_memory_allocated``).

    The peak is counted from the start of the program, or from the last :func:`reset_peak_memory_stats`. To measure a
    part of a program without a change to this peak, use :func:`tcuda.memory.track`.

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.reset_peak_memory_stats()
        >>> before = tcuda.memory_allocated()
        >>> x = xp.zeros(1000, dtype="float32")
        >>> del x
        >>> tcuda.max_memory_allocated() - before
        4096
    """
    known = ledger_if_any()
    return (
        0 if known is None else known.peak_allocated(cuda.getDevice() if device is None else resolve(device, OF_MEMORY))
    )


def memory_reserved(device: DeviceArgument = None) -> int:
    """Return the bytes that the allocator holds on ``device``, used and free (``torch.cuda.memory_reserved``).

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.zeros(1000)
        >>> tcuda.memory_reserved() >= tcuda.memory_allocated() > 0
        True
    """
    known = ledger_if_any()
    if known is None:
        return 0
    return known.reserved(cuda.getDevice() if device is None else resolve(device, OF_MEMORY))


def max_memory_reserved(device: DeviceArgument = None) -> int:
    """Return the peak of :func:`memory_reserved` on ``device``, in bytes (``torch.cuda.max_memory_reserved``).

    The peak is counted from the start of the program, or from the last :func:`reset_peak_memory_stats`.

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.zeros(1000)
        >>> tcuda.max_memory_reserved() >= tcuda.memory_reserved() > 0
        True
    """
    known = ledger_if_any()
    return (
        0 if known is None else known.peak_reserved(cuda.getDevice() if device is None else resolve(device, OF_MEMORY))
    )


def memory_cached(device: DeviceArgument = None) -> int:
    """Return :func:`memory_reserved`, under its old name (``torch.cuda.memory_cached``).

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.memory_cached() == tcuda.memory_reserved()  # warns: use memory_reserved()
        True
    """
    _warn("`tcuda.memory_cached` has been renamed to `tcuda.memory_reserved`")
    return memory_reserved(device)


def max_memory_cached(device: DeviceArgument = None) -> int:
    """Return :func:`max_memory_reserved`, under its old name (``torch.cuda.max_memory_cached``).

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.max_memory_cached() == tcuda.max_memory_reserved()  # warns: use max_memory_reserved()
        True
    """
    _warn("`tcuda.max_memory_cached` has been renamed to `tcuda.max_memory_reserved`")
    return max_memory_reserved(device)


def memory_stats(device: DeviceArgument = None) -> dict[str, Any]:
    """Return all statistics of the allocator on ``device`` (``torch.cuda.memory_stats``).

    Most keys are ``"<counter>.<pool>.<figure>"``:

    * The counters are ``allocated_bytes``, ``requested_bytes``, ``active_bytes``, ``reserved_bytes``,
      ``inactive_split_bytes``, ``allocation``, ``active``, ``segment`` and ``inactive_split``.
    * The pools are ``all``, ``large_pool`` and ``small_pool``.
    * The figures are ``current``, ``peak``, ``allocated`` and ``freed``.

    The counters ``oversize_allocations`` and ``oversize_segments`` have figures, but no pools. The keys
    ``num_alloc_retries``, ``num_oom_rejections``, ``num_ooms``, ``num_sync_all_streams``, ``num_device_alloc``,
    ``num_device_free`` and ``max_split_size`` have a single number each. The guide to memory says what each counter
    counts, and which sources count it.

    ``reserved_bytes_by_private_pools`` has the figures of ``reserved_bytes`` for each private pool, such as
    ``"reserved_bytes_by_private_pools.0_3.all.peak"`` for the pool whose :attr:`MemPool.id` is ``(0, 3)``. A pool that
    is gone has no figures. ``scope_bytes`` has figures for each :class:`tcuda.memory.scope`, such as
    ``"scope_bytes.fft.peak"``.

    Args:
        device: The device; the current device if None.

    Returns:
        A dictionary of 123 numbers, in bytes or counts, and those of private pools and scopes; an empty dictionary
        before tcuda is initialised.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> before = tcuda.memory_stats()["allocation.all.allocated"]
        >>> x = xp.zeros(1000)
        >>> y = x + 1
        >>> tcuda.memory_stats()["allocation.all.allocated"] - before
        2
    """
    known = ledger_if_any()
    if known is None:
        return {}
    index = cuda.getDevice() if device is None else resolve(device, OF_MEMORY)
    stats: dict[str, Any] = known.statistics(index)
    if not (names := scopes.names()):
        return stats
    counters = known.scope_bytes(index)
    for name, number in names.copy().items():
        if number < len(counters) and any(counters[number]):
            figures = zip(FIGURES, counters[number], strict=True)
            stats.update((f"scope_bytes.{name}.{figure}", value) for figure, value in figures)
    return dict(sorted(stats.items()))


def memory_stats_as_nested_dict(device: DeviceArgument = None) -> dict[str, Any]:
    """Return :func:`memory_stats` as nested dictionaries (``torch.cuda.memory_stats_as_nested_dict``).

    The keys of ``reserved_bytes_by_private_pools`` are the numbers of pools, such as ``(0, 3)``.

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.zeros(1000)
        >>> stats = tcuda.memory_stats_as_nested_dict()
        >>> stats["allocated_bytes"]["all"]["current"] == tcuda.memory_allocated()
        True
    """
    stats = memory_stats(device)
    nested: dict[Any, Any] = {_BY_POOL: {}} if stats else {}
    for key, value in stats.items():
        *path, figure = key.split(".")
        inner = nested
        for name in path:
            of_pool = inner is nested[_BY_POOL]
            inner = inner.setdefault(tuple(map(int, name.split("_"))) if of_pool else name, {})
        inner[figure] = value
    return nested


def reset_peak_memory_stats(device: DeviceArgument = None) -> None:
    """Set every peak of :func:`memory_stats` to its current value (``torch.cuda.reset_peak_memory_stats``).

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.reset_peak_memory_stats()
        >>> tcuda.max_memory_allocated() == tcuda.memory_allocated()
        True
    """
    ledger().reset_peaks(resolve(device, OF_MEMORY))


def reset_accumulated_memory_stats(device: DeviceArgument = None) -> None:
    """Set the sums and counts of :func:`memory_stats` to 0 (``torch.cuda.reset_accumulated_memory_stats``).

    The sums are the figures ``allocated`` and ``freed``. The counts are the numbers whose names begin with ``num_``.

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.reset_accumulated_memory_stats()
        >>> tcuda.memory_stats()["allocated_bytes.all.allocated"]
        0
    """
    ledger().reset_accumulated(resolve(device, OF_MEMORY))


def reset_max_memory_allocated(device: DeviceArgument = None) -> None:
    """Call :func:`reset_peak_memory_stats`, which replaced this function (``torch.cuda.reset_max_memory_allocated``).

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.reset_max_memory_allocated()  # warns: use reset_peak_memory_stats()
        >>> tcuda.max_memory_allocated() == tcuda.memory_allocated()
        True
    """
    _warn(f"tcuda.reset_max_memory_allocated {_RESETS_ALL}")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: DeviceArgument = None) -> None:
    """Call :func:`reset_peak_memory_stats`, which replaced this function (``torch.cuda.reset_max_memory_cached``).

    Args:
        device: The device; the current device if None.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.reset_max_memory_cached()  # warns: use reset_peak_memory_stats()
        >>> tcuda.max_memory_reserved() == tcuda.memory_reserved()
        True
    """
    _warn(f"tcuda.reset_max_memory_cached {_RESETS_ALL}")
    reset_peak_memory_stats(device)


_RESETS_ALL = "now calls tcuda.reset_peak_memory_stats, which resets /all/ peak memory stats."


def _warn(text: str) -> None:
    warnings.warn(text, FutureWarning, stacklevel=3)
