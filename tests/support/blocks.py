"""Blocks of memory, read from snapshots."""

from __future__ import annotations

from typing import Any

import tcuda


def block_of(array: Any) -> dict[str, Any]:
    """Return the block of memory of an array."""
    blocks = [block for segment in tcuda.memory_snapshot() for block in segment["blocks"]]
    [block] = [block for block in blocks if block["address"] == array.data.mem.ptr]
    return block
