"""The results of a replay of a workload through an allocator."""

from __future__ import annotations

from typing import NamedTuple


class Replayed(NamedTuple):
    """The results of an allocator with a workload.

    Attributes:
        source: The allocator.
        workload: The workload.
        allocations: The number of allocations in the workload.
        live: The peak of the bytes that were requested and not yet freed.
        reserved: The peak of the bytes that the allocator held in the first replay of a fresh process.
        driver_allocations: The number of allocations from the driver in that replay; None if the allocator does not
            count them.
        seconds: The median time of the replays by calls of the allocator, each with an empty cache at the beginning.
        array_seconds: The median time of the same replays by arrays; None if arrays were not measured.
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
