"""Replays workloads through an allocator: ``python bench/replay_worker.py SOURCE STREAM WORKLOAD...``; see ``replay``.

STREAM is ``busy`` or ``idle``.

A workload is given by its name or by the path of a trace, and a program on several streams by its name. This process
imports the slow modules, but never uses the device. Each workload is replayed in a fork of this process, and therefore
with a fresh allocator. The worker prints a line of JSON for each workload.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replayed import Replayed
from sources import SOURCES
from stream_players import played, settle
from stream_programs import PROGRAMS
from workloads import COLD, FREED, WORKLOADS, Events, allocations, peak_live, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from sources import Allocator

REPLAYS = 5
"""The number of timed replays, in the steady state and after the cache was emptied; the result is their median."""

EVENTS_OF_SPIN = 400
"""A busy stream gets a kernel of 2 ms before so many events, which take less time than the kernel."""


def load(workload: str) -> Events:
    """Return the events of ``workload``, the name of a workload or the path of a trace."""
    return WORKLOADS[workload]() if workload in WORKLOADS else read_trace(Path(workload))


def replayed(source: str, workload: str, *, busy: bool) -> Replayed:
    """Make the allocator ``source`` and measure it with ``workload``."""
    events = [] if workload in PROGRAMS else load(workload)
    allocator = SOURCES[source].make()
    allocator.synchronize()
    gc.disable()
    if workload in PROGRAMS:
        return played(source, workload, allocator, busy=busy)
    first = _peak_reserved(allocator, events, busy=busy)  # This must be the first replay of the process.
    driver_allocations = allocator.driver_allocations() if allocator.driver_allocations else None
    again, settled_after = settle(allocator, functools.partial(_peak_reserved, allocator, events, busy=busy))
    calls = allocator.driver_calls() if allocator.driver_calls else None
    steady_seconds = statistics.median(
        replay_once(allocator, events, allocator.allocate, allocator.free, busy=busy) for _ in range(REPLAYS)
    )
    if calls is not None and allocator.driver_calls is not None:
        calls = allocator.driver_calls() - calls
    arrays = workload in COLD
    return Replayed(
        source=source,
        workload=Path(workload).stem,
        allocations=allocations(events),
        live=peak_live(events),
        reserved=first,
        driver_allocations=driver_allocations,
        seconds=_cold_seconds(allocator, events, allocator.allocate, allocator.free, busy=busy),
        array_seconds=_cold_seconds(allocator, events, allocator.array, _let_die, busy=busy) if arrays else None,
        events=len(events),
        busy=busy,
        steady_reserved=max(first, again),
        settled_after=settled_after,
        steady_seconds=steady_seconds,
        steady_driver_calls=calls,
    )


def _peak_reserved(allocator: Allocator, events: Events, *, busy: bool) -> int:
    if allocator.peak_reserved is not None:
        replay_once(allocator, events, allocator.allocate, allocator.free, busy=busy)
        return allocator.peak_reserved()
    peak = 0

    def allocate(size: int) -> Any:
        nonlocal peak
        allocated = allocator.allocate(size)
        peak = max(peak, allocator.reserved())
        return allocated

    replay_once(allocator, events, allocate, allocator.free, busy=busy)
    return peak


def _cold_seconds(
    allocator: Allocator,
    events: Events,
    allocate: Callable[[int], Any],
    free: Callable[[Any], object],
    *,
    busy: bool,
) -> float:
    durations = []
    for _ in range(REPLAYS):
        allocator.clear()
        durations.append(replay_once(allocator, events, allocate, free, busy=busy))
    return statistics.median(durations)


def replay_once(
    allocator: Allocator,
    events: Events,
    allocate: Callable[[int], Any],
    free: Callable[[Any], object],
    *,
    busy: bool,
    alive: dict[int, Any] | None = None,
) -> float:
    """Replay ``events``, return the time that they took, and free the memory that is still alive.

    If an allocation fails, ``alive`` has the memory that is alive.
    """
    alive = {} if alive is None else alive
    allocator.synchronize()  # The driver keeps a limited number of kernels waiting.
    start = time.perf_counter()
    for place in range(0, len(events), EVENTS_OF_SPIN):
        if busy:
            allocator.spin()
        for id, size in events[place : place + EVENTS_OF_SPIN]:
            if size == FREED:
                free(alive.pop(id))
            else:
                alive[id] = allocate(size)
    duration = time.perf_counter() - start
    while alive:
        free(alive.popitem()[1])
    return duration


def _let_die(array: Any) -> None:
    pass


def _print_replayed(source: str, workload: str, *, busy: bool) -> None:
    print(json.dumps(replayed(source, workload, busy=busy)._asdict()))


def in_a_fork(work: Callable[[], None]) -> bool:
    """Do ``work`` in a fork, and return whether it succeeded."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            sys.stdout.flush()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main(source: str, stream: str, *workloads: str) -> int:
    """Replay all workloads; return 0 after success, or 1 if a replay failed, with the reason on stderr."""
    for module in SOURCES[source].imports:
        importlib.import_module(module)
    for workload in workloads:
        if not in_a_fork(functools.partial(_print_replayed, source, workload, busy=stream == "busy")):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
