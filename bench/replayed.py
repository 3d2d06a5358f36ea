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
        events: The number of allocations and frees in the workload.
        busy: Whether the stream had work all the time.
        steady_reserved: The peak of the bytes that the allocator held in all replays, with nothing cleared.
        steady_seconds: The median time of the later replays, which follow the replays of ``settled_after``.
        steady_driver_calls: The number of calls that took memory from the driver or gave memory back in the later
            replays; None if the allocator does not count them.
        settled_after: The number of replays before the first one that called no driver; 1 if the allocator does not
            count these calls.
    """

    source: str
    workload: str
    allocations: int
    live: int
    reserved: int
    driver_allocations: int | None
    seconds: float
    array_seconds: float | None
    events: int = 1
    busy: bool = False
    steady_reserved: int = 0
    steady_seconds: float = 0.0
    steady_driver_calls: int | None = None
    settled_after: int = 1

    @property
    def reserved_per_live(self) -> float:
        """Peak reserved / peak live."""
        return self.reserved / self.live

    @property
    def steady_per_live(self) -> float:
        """Peak reserved / peak live of a program that repeats itself."""
        return self.steady_reserved / self.live
