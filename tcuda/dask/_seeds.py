"""The seeds of workers: one for each name, derived from the seed of the program."""

from __future__ import annotations

import hashlib


def worker_seed(seed: int, name: object) -> int:
    """Return the seed of the worker ``name``.

    The seed is the BLAKE2b digest of 8 bytes, with the lowest byte first, of the text ``"{seed}:{name}"``. So the seed
    of a worker depends neither on the other workers nor on the device, and a worker that is started again under its
    name gets the same seed.

    Args:
        seed: The seed of the program.
        name: The name of the worker; the names of a local cluster are 0, 1, 2, ...

    Returns:
        A number from 0 to 2**64 - 1.

    Example:
        >>> import tcuda.dask
        >>> tcuda.dask.worker_seed(42, 0)
        15232497090756937497
    """
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
