"""The workloads for the measurement of allocators, which are the same in every run.

A workload is a list of events: ``(id, bytes)`` allocates memory, and ``(id, FREED)`` frees the memory with that id.
Memory that no event frees is alive at the end.
"""

from __future__ import annotations

import functools
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

Events: TypeAlias = "list[tuple[int, int]]"

FREED = -1

_KIB, _MIB = 1 << 10, 1 << 20
_SEED = 0
_DATA = Path(__file__).parent / "data"


def _log_uniform(random: np.random.Generator, low: int, high: int, count: int) -> npt.NDArray[np.int64]:
    return np.exp(random.uniform(np.log(low), np.log(high), count)).astype(np.int64)


def _cold(count: int, low: int, high: int) -> Events:
    """Return a workload that only allocates, so that all memory comes from the device."""
    return [(id, int(size)) for id, size in enumerate(_log_uniform(np.random.default_rng(_SEED), low, high, count))]


def _churn(low: int, high: int, live: int, steps: int) -> Events:
    """Return a workload that frees a random allocation before each new one, as soon as ``live`` are alive."""
    random = np.random.default_rng(_SEED)
    sizes = _log_uniform(random, low, high, steps)
    picks = random.random(steps)
    events: Events = []
    alive: list[int] = []
    for id in range(steps):
        if len(alive) == live:
            victim = int(picks[id] * live)
            alive[victim], alive[-1] = alive[-1], alive[victim]
            events.append((alive.pop(), FREED))
        events.append((id, int(sizes[id])))
        alive.append(id)
    return events


def read_trace(path: Path) -> Events:
    """Read a trace: the array ``events``, of integers and of shape ``(n, 2)``, in a file of ``numpy.savez()``.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a trace.
    """
    try:
        with np.load(path) as arrays:
            events = arrays["events"]
    except (KeyError, IndexError, AttributeError, TypeError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} holds no array 'events'.") from error
    if events.dtype.kind != "i" or events.ndim != 2 or events.shape[1] != 2:
        raise ValueError(
            f"'events' in {path} is of type {events.dtype} and shape {events.shape}; not integers, (n, 2)."
        )
    trace = [(int(id), int(size)) for id, size in events]
    alive: set[int] = set()
    for id, size in trace:
        if (id in alive) != (size == FREED) or size < FREED or size == 0:
            raise ValueError(f"{path}: ({id}, {size}) neither allocates a new id nor frees one that is alive.")
        (alive.remove if size == FREED else alive.add)(id)
    if not trace:
        raise ValueError(f"{path} has no event.")
    return trace


COLD: dict[str, Callable[[], Events]] = {
    "cold_small": functools.partial(_cold, 3000, 512, _MIB),
    "cold_medium": functools.partial(_cold, 2000, 512, 4 * _MIB),
    "cold_large": functools.partial(_cold, 500, _MIB, 64 * _MIB),
}
"""Workloads that only allocate; they measure the cost of memory from the device."""

CHURNS: dict[str, Callable[[], Events]] = {
    "churn_small": functools.partial(_churn, 512, 4 * _MIB, 500, 40_000),
    "churn_large": functools.partial(_churn, 64 * _KIB, 128 * _MIB, 200, 20_000),
}
"""Workloads of random allocations and frees; they measure the memory that an allocator holds."""

TRACES: dict[str, Callable[[], Events]] = {
    name: functools.partial(read_trace, _DATA / f"{name}.npz") for name in ("deeplab_infer", "gpt2_generate")
}
"""Recordings of real programs, which ``data/README.md`` describes."""

WORKLOADS = {**COLD, **CHURNS, **TRACES}
"""All workloads by name, as functions that make the events."""


def allocations(events: Events) -> int:
    """Return the number of events that allocate."""
    return sum(size != FREED for _, size in events)


def peak_live(events: Events) -> int:
    """Return the peak of the live bytes."""
    sizes: dict[int, int] = {}
    live = peak = 0
    for id, size in events:
        if size == FREED:
            live -= sizes.pop(id)
        else:
            sizes[id] = size
            live += size
            peak = max(peak, live)
    return peak
