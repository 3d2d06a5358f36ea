"""Measures an allocator with limits: ``python bench/limits_worker.py SOURCE STREAM [--quick] WORKLOAD...``.

See ``limits``. ``--quick`` leaves out the search for the smallest limit. STREAM is ``busy`` or ``idle``. Each workload
is replayed in a fork of this process, as in ``replay_worker``. The worker prints a line of JSON for each workload.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plans import PIECE, least
from replay_worker import in_a_fork, load, replay_once
from sources import SOURCES

if TYPE_CHECKING:
    from sources import Allocator
    from workloads import Events


QUICK = "--quick"


class Limits(NamedTuple):
    """The results of an allocator with a workload.

    Attributes:
        source: The allocator.
        workload: The workload.
        busy: Whether the stream had work all the time.
        events: The number of allocations and frees in the workload.
        bound: The peak of the live bytes, rounded as the allocators must round; no allocator can do with less.
        smallest: The smallest limit in bytes; None if the allocator has no limit, or without a search.
        held: The peak of the bytes that the allocator held in both replays without a limit.
        seconds: The times of the first and of the second replay.
        calls: The calls of the driver in the first and in the second replay; None if the allocator does not count them.
    """

    source: str
    workload: str
    busy: bool
    events: int
    bound: int
    smallest: int | None
    held: int
    seconds: tuple[float, float]
    calls: tuple[int, int] | None

    @property
    def per_live(self) -> float | None:
        """The smallest limit, as a multiple of the bound."""
        return None if self.smallest is None else self.smallest / self.bound


def _measured(source: str, workload: str, *, busy: bool, quick: bool) -> Limits:
    events = load(workload)
    bound = least(events)
    allocator = SOURCES[source].make()
    if busy:
        allocator.spin()  # the first call compiles or loads the kernel, which takes longer than a replay
    allocator.synchronize()
    gc.disable()
    count = allocator.driver_calls
    seconds, counts, held = [], [count() if count else 0], 0
    for _ in range(2):
        peak, duration = _watched(allocator, events, busy=busy)
        held = max(held, peak)
        seconds.append(duration)
        counts.append(count() if count else 0)
    searched = not quick and allocator.set_limit is not None
    smallest = _smallest(allocator, events, bound, held, busy=busy) if searched else None
    return Limits(
        source=source,
        workload=Path(workload).stem,
        busy=busy,
        events=len(events),
        bound=bound,
        smallest=smallest,
        held=held,
        seconds=(seconds[0], seconds[1]),
        calls=(counts[1] - counts[0], counts[2] - counts[1]) if count else None,
    )


def _watched(allocator: Allocator, events: Events, *, busy: bool) -> tuple[int, float]:
    """Return the peak of the held bytes, and the time of a replay."""
    replay = functools.partial(replay_once, allocator, events, allocator.allocate, allocator.free, busy=busy)
    if allocator.peak_reserved is not None:
        duration = replay()
        return allocator.peak_reserved(), duration
    duration = replay()
    return allocator.reserved(), duration  # the pools of CuPy keep what they have


def _smallest(allocator: Allocator, events: Events, bound: int, held: int, *, busy: bool) -> int:
    """Return the smallest limit, between the bound and a limit that is known to be enough."""
    fails, ends = bound - PIECE, held
    while not _ends(allocator, events, ends, busy=busy):
        fails, ends = ends, ends + ends // 4
    while ends - fails > max(PIECE, bound // 1000):
        middle = (fails + ends) // 2 // PIECE * PIECE
        if _ends(allocator, events, middle, busy=busy):
            ends = middle
        else:
            fails = middle
    return ends


def _ends(allocator: Allocator, events: Events, limit: int, *, busy: bool) -> bool:
    """Return whether a replay ends that begins with an empty cache."""
    assert allocator.set_limit is not None
    allocator.synchronize()
    allocator.clear()
    allocator.set_limit(limit)
    alive: dict[int, Any] = {}
    try:
        replay_once(allocator, events, allocator.allocate, allocator.free, busy=busy, alive=alive)
    except Exception as error:  # each library has an error of its own
        if "memory" not in f"{type(error).__name__} {error}".lower():
            raise
        return False
    finally:
        while alive:
            allocator.free(alive.popitem()[1])
    return True


def main(source: str, stream: str, *arguments: str) -> int:
    quick = QUICK in arguments
    for module in SOURCES[source].imports:
        importlib.import_module(module)

    def show(workload: str) -> None:
        print(json.dumps(_measured(source, workload, busy=stream == "busy", quick=quick)._asdict()))

    return 0 if all(in_a_fork(functools.partial(show, workload)) for workload in arguments if workload != QUICK) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
