"""The constants of Philox generators, the number of blocks of a device, and seeds for generators of another kind."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK = 256
"""The number of threads in each block of a kernel that draws."""

INCREMENT = 4
"""The increase of the offset by a draw, which takes four numbers of 32 bits."""

WORD = (1 << 64) - 1
"""The largest seed and the largest offset."""


def most_blocks(properties: Mapping[str, Any]) -> int:
    """Return the number of blocks that a device can hold at a time, from its ``cudaDeviceProp``."""
    processors: int = properties["multiProcessorCount"]
    threads: int = properties["maxThreadsPerMultiProcessor"]
    return processors * (threads // BLOCK)


def derived_seed(seed: int, offset: int) -> int:
    """Return a seed of 64 bits for a generator of another kind. Each offset gives another seed."""
    import hashlib  # here, because the import takes long

    return int.from_bytes(hashlib.blake2b(struct.pack("<QQ", seed, offset), digest_size=8).digest(), "little")
