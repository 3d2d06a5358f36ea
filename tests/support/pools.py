"""Pools of memory, as snapshots tell them."""

from __future__ import annotations

from typing import Any

import tcuda


def pool_of(array: Any) -> tuple[int, int]:
    """Return the number of the pool whose memory ``array`` has."""
    address = int(array.data.ptr)
    [pool] = [
        segment["segment_pool_id"]
        for segment in tcuda.memory_snapshot()
        if segment["address"] <= address < segment["address"] + segment["total_size"]
    ]
    return tuple(pool)


def held_by(pool: tuple[int, int]) -> int:
    """Return how many bytes the pool of this number holds."""
    return sum(segment["total_size"] for segment in tcuda.memory_snapshot(pool))
