"""Collectives of arrays on the host, by messages between the ranks.

The elements are reduced in the order of the ranks, so every rank gets the same bits.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tcuda.dask._mailbox import Mailbox

    Array = npt.NDArray[Any]

_UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_SMALL = 1 << 16
"""The bytes up to which every rank sends its whole array to each other rank. A larger array takes two exchanges, in
which the ranks each reduce a part, and send fewer bytes."""


class HostCollectives:
    """The collectives of a rank.

    Args:
        mailbox: The messages to this rank.
        rank: The number of this rank.
        size: The number of ranks.
    """

    def __init__(self, mailbox: Mailbox, rank: int, size: int) -> None:
        self._mailbox = mailbox
        self._rank = rank
        self._size = size
        self._others = [other for other in range(size) if other != rank]
        self._step = 0

    def all_reduce(self, flat: Array, op: str) -> Array:
        """Return the reduction of the vectors of all ranks."""
        call = _call("all_reduce", flat, op)
        if flat.nbytes <= _SMALL:
            return _reduce(op, self._gather(call, flat))
        parts = np.array_split(flat, self._size)
        return np.concatenate(self._gather(call, self._reduce_parts(call, parts, op)))

    def reduce_scatter(self, flat: Array, op: str) -> Array:
        """Return this rank's part of the reduction; the length of ``flat`` is a multiple of the number of ranks."""
        return self._reduce_parts(_call("reduce_scatter", flat, op), np.split(flat, self._size), op)

    def all_gather(self, flat: Array) -> list[Array]:
        """Return the vectors of all ranks."""
        return self._gather(_call("all_gather", flat), flat)

    def broadcast(self, flat: Array, root: int) -> Array:
        """Return the vector of ``root``; the vectors of the other ranks tell only the size and the dtype."""
        call = _call("broadcast", flat, root)
        if root != self._rank:
            return self._exchange(call, {}, [root])[root]
        self._exchange(call, dict.fromkeys(self._others, flat), [])
        return flat

    def barrier(self) -> None:
        """Wait until all ranks have called the method."""
        nothing = np.empty(0, np.uint8)
        self._gather(_call("barrier", nothing), nothing)

    def _gather(self, call: str, flat: Array) -> list[Array]:
        received = self._exchange(call, dict.fromkeys(self._others, flat), self._others)
        return [flat if rank == self._rank else received[rank] for rank in range(self._size)]

    def _reduce_parts(self, call: str, parts: Sequence[Array], op: str) -> Array:
        received = self._exchange(call, {other: parts[other] for other in self._others}, self._others)
        return _reduce(op, [parts[rank] if rank == self._rank else received[rank] for rank in range(self._size)])

    def _exchange(self, call: str, outgoing: dict[int, Array], incoming: Sequence[int]) -> dict[int, Array]:
        self._step += 1
        return self._mailbox.exchange(self._step, call, outgoing, incoming)


def _call(name: str, flat: Array, *arguments: object) -> str:
    """Return the text by which the ranks compare their calls."""
    return f"{name}({', '.join([f'{flat.size} x {flat.dtype}', *map(str, arguments)])})"


def _reduce(op: str, arrays: Sequence[Array]) -> Array:
    reduced: Array = functools.reduce(_UFUNCS[op], arrays)
    return reduced
