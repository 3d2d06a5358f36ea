"""What a generator needs to know of a device, and generators of another kind of a generator."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK = 256
"""Threads of a block of a kernel that draws."""

INCREMENT = 4
"""How far a draw moves the offset: four numbers of 32 bits."""

WORD = (1 << 64) - 1
"""The largest seed and the largest offset."""


def most_blocks(properties: Mapping[str, Any]) -> int:
    """Return how many blocks a device can hold at a time, by its ``cudaDeviceProp``."""
    processors: int = properties["multiProcessorCount"]
    threads: int = properties["maxThreadsPerMultiProcessor"]
    return processors * (threads // BLOCK)


def derived_seed(seed: int, offset: int) -> int:
    """Return 64 bits for a generator of another kind, which has to give other numbers at every offset."""
    import hashlib  # which takes long to import

    return int.from_bytes(hashlib.blake2b(struct.pack("<QQ", seed, offset), digest_size=8).digest(), "little")
