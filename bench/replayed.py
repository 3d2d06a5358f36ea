"""What a replay of a workload through an allocator finds."""

from __future__ import annotations

from typing import NamedTuple


class Replayed(NamedTuple):
    """What an allocator did with a workload.

    Attributes:
        source: The allocator.
        workload: The workload.
        allocations: How many allocations that is.
        live: The most bytes that were asked for and not freed, at a time.
        reserved: The most bytes that the allocator held in the first replay of a fresh process.
        driver_allocations: How often it took memory from the driver in that replay; None if it does not say.
        seconds: What a replay takes that begins with nothing cached, by calls of the allocator; the median of several.
        array_seconds: The same by arrays, where those were measured.
    """

    source: str
    workload: str
    allocations: int
    live: int
    reserved: int
    driver_allocations: int | None
    seconds: float
    array_seconds: float | None

    @property
    def reserved_per_live(self) -> float:
        """Peak reserved / peak live."""
        return self.reserved / self.live
