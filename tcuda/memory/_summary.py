"""The statistics as a table that people can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.ledger import ledger
from tcuda.memory._statistics import FIGURES, memory_stats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcuda._process.devices import DeviceArgument

_WIDTH = 75
_SCOPE_WIDTH = 19
_POOLS = (("all", "{}"), ("large_pool", "      from large pool"), ("small_pool", "      from small pool"))
_COUNTERS = (
    ("allocated_bytes", "Allocated memory"),
    ("active_bytes", "Active memory"),
    ("requested_bytes", "Requested memory"),
    ("reserved_bytes", "GPU reserved memory"),
    ("inactive_split_bytes", "Non-releasable memory"),
    ("allocation", "Allocations"),
    ("active", "Active allocs"),
    ("segment", "GPU reserved segments"),
    ("inactive_split", "Non-releasable allocs"),
)
_OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize GPU segments"))


class MemorySummary(str):
    """The table of :func:`memory_summary`: a text, which a notebook shows with its lines and columns."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from tcuda._viz.shared import notebook  # here, because few programs need the module

        return notebook.preformatted(self)


def memory_summary(device: DeviceArgument = None, abbreviated: bool = False) -> MemorySummary:
    """Return the statistics of ``device`` as a table (``torch.cuda.memory_summary``).

    The result is a text. A notebook shows the text of a cell's last expression as a table, too. If the program has
    opened a :class:`tcuda.memory.scope`, the table has a row for each name of scopes.

    Args:
        device: The device; the current device if None.
        abbreviated: Whether to omit the lines of the small and the large pool.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.zeros(1000)
        >>> table = tcuda.memory_summary(abbreviated=True)
        >>> "Allocated memory" in table
        True
    """
    ledger()
    index = resolve(device, OF_MEMORY)
    return MemorySummary("".join(f"|{line}|\n" for line in _lines(index, memory_stats(index), abbreviated)))


def _lines(index: int, stats: dict[str, int], abbreviated: bool) -> Iterator[str]:
    yield "=" * _WIDTH
    yield f"{f'tcuda memory summary, device ID {index}':^{_WIDTH}}"
    yield "-" * _WIDTH
    ooms, retries = stats["num_ooms"], stats["num_alloc_retries"]
    yield f"            CUDA OOMs: {ooms:<12d} |        cudaMalloc retries: {retries:<8d}  "
    yield "=" * _WIDTH
    yield "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  "
    for counter, title in _COUNTERS:
        yield "-" * _WIDTH
        cell = _size if counter.endswith("bytes") else _count
        # Each column has one unit, which the sum of both pools chooses.
        scales = [stats[f"{counter}.all.{figure}"] for figure in FIGURES]
        for pool, name in _POOLS[: 1 if abbreviated else None]:
            values = [stats[f"{counter}.{pool}.{figure}"] for figure in FIGURES]
            yield _row(name.format(title), values, scales, cell)
    for counter, title in _OVERSIZE:
        yield "-" * _WIDTH
        values = [stats[f"{counter}.{figure}"] for figure in FIGURES]
        yield _row(title, values, values, _count)
    names = [key.split(".")[1] for key in stats if key.startswith("scope_bytes.") and key.endswith(".current")]
    if names:
        yield "-" * _WIDTH
        yield f"{' Allocated memory by scope':<{_WIDTH}}"
    for name in names:
        values = [stats[f"scope_bytes.{name}.{figure}"] for figure in FIGURES]
        shown = name if len(name) <= _SCOPE_WIDTH else f"{name[: _SCOPE_WIDTH - 1]}…"
        yield _row(f"  {shown}", values, values, _size)
    yield "=" * _WIDTH


def _row(title: str, values: list[int], scales: list[int], cell: Callable[[int, int], str]) -> str:
    return f" {title:<21} | " + " | ".join(map(cell, values, scales)) + " "


def _size(size: int, scale: int) -> str:
    units = ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = _power(scale, 768 * 1024, 1024, len(units) - 1)
    return f"{size // 1024**power:6d} {units[power]}"


def _count(count: int, scale: int) -> str:
    units = (" ", "K", "M")
    power = _power(scale, 750 * 1000, 1000, len(units) - 1)
    return f"{count // 1000**power:7d} {units[power]} "


def _power(value: float, limit: int, base: int, most: int) -> int:
    """Return the exponent of the power of ``base`` by which to divide ``value`` to get below ``limit``."""
    power = 0
    while power < most and value >= limit:
        value /= base
        power += 1
    return power
