"""Pools of memory, read from snapshots."""

from __future__ import annotations

from typing import Any

import tcuda


def pool_of(array: Any) -> tuple[int, int]:
    """Return the id of the pool that the memory of ``array`` comes from."""
    address = int(array.data.ptr)
    [pool] = [
        segment["segment_pool_id"]
        for segment in tcuda.memory_snapshot()
        if segment["address"] <= address < segment["address"] + segment["total_size"]
    ]
    return tuple(pool)


def held_by(pool: tuple[int, int]) -> int:
    """Return how many bytes the segments of the pool have."""
    return sum(segment["total_size"] for segment in tcuda.memory_snapshot(pool))


def settle() -> None:
    """Wait for the devices, and let the allocator take back what released graphs have kept, by an allocation."""
    for device in range(tcuda.device_count()):
        tcuda.synchronize(device)
        with tcuda.device(device):
            tcuda.xp.empty(1)
