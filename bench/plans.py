"""The least memory that a workload can be served with, and the memory of a plan that knows the workload beforehand.

Sizes are rounded as tcuda and torch must round them: a block to multiples of 512 bytes, and all blocks together to
multiples of 2 MiB, the smallest piece of physical memory.

The plan gives each allocation an address for its whole life, in one range of addresses. Two orders are tried: the
largest allocations first, and the order of the program. In both, an allocation gets the smallest gap, between the
allocations that live at the same time, that is large enough, or else the end of the range. The better order counts. An
allocator does not know the future. But tcuda's allocator can hold less than the plan, because physical memory can have
two addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from workloads import FREED, peak_live

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    from workloads import Events

    Integers = npt.NDArray[np.int64]

_UNIT = 512
PIECE = 2 << 20
"""The smallest piece of physical memory."""


class Plan(NamedTuple):
    """The memory that a workload needs, in bytes.

    Attributes:
        bound: The peak of the live bytes; no allocator can hold less.
        height: The size of the range of addresses of the plan.
    """

    bound: int
    height: int


def least(events: Events) -> int:
    """Return the bound of a workload: the peak of the live bytes, rounded."""
    return _round_up(peak_live(_in_units(events)), PIECE)


def plan(events: Events) -> Plan:
    """Return the bound and the plan of a workload."""
    rounded = _in_units(events)
    lives = _lives(rounded)
    by_size = np.lexsort((lives[:, 0], -lives[:, 2]))
    height = min(_height(lives, by_size.tolist()), _height(lives, range(len(lives))))
    return Plan(least(events), _round_up(height, PIECE))


def _in_units(events: Events) -> Events:
    return [(id, size if size == FREED else _round_up(size, _UNIT)) for id, size in events]


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step


def _lives(events: Events) -> Integers:
    """Return the start, the end and the size of each allocation, in the order of the program."""
    lives: dict[int, list[int]] = {}
    for time, (id, size) in enumerate(events):
        if size == FREED:
            lives[id][1] = time
        else:
            lives[id] = [time, len(events), size]
    return np.array(list(lives.values()), np.int64)


def _height(lives: Integers, order: Iterable[int]) -> int:
    """Return the height of the plan that places the allocations in an order."""
    placed = np.zeros((4, len(lives)), np.int64)  # begin of the life, end, lowest address, end of the addresses
    height = 0
    for count, each in enumerate(order):
        begin, end, size = lives[each].tolist()
        begins, ends, lows, highs = placed[:, :count]
        together = np.flatnonzero((begins < end) & (ends > begin))
        starts = np.zeros(len(together) + 1, np.int64)  # of the gap below each allocation, and of the last gap
        np.maximum.accumulate(highs[together], out=starts[1:])
        gaps = lows[together] - starts[:-1]
        fitting = np.flatnonzero(gaps >= size)
        at = int(starts[fitting[gaps[fitting].argmin()]] if len(fitting) else starts[-1])
        place = int(np.searchsorted(lows, at))  # in ascending order of the addresses
        placed[:, place + 1 : count + 1] = placed[:, place:count].copy()
        placed[:, place] = begin, end, at, at + size
        height = max(height, at + size)
    return height
