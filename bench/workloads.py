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
from array_programs import ARRAY_PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


class _Program:
    """The events of a program, which it adds one by one."""

    def __init__(self) -> None:
        self.events: Events = []
        self._made = 0

    def take(self, *sizes: int) -> list[int]:
        ids = list(range(self._made, self._made + len(sizes)))
        self._made += len(sizes)
        self.events += zip(ids, sizes, strict=True)
        return ids

    def free(self, ids: Iterable[int]) -> None:
        self.events += ((id, FREED) for id in ids)


def _train_transformer(layers: int, width: int, steps: int) -> Events:
    """Return the training of a transformer on batches of 8 texts, whose length changes from step to step."""
    random = np.random.default_rng(_SEED)
    program, batch, heads, words = _Program(), 8, 12, 50_257
    take, free = program.take, program.free
    weights = [4 * width * width * factor for _ in range(layers) for factor in (3, 1, 4, 4)]
    take(*weights, 4 * words * width)
    moments = False
    for _ in range(steps):
        length = int(random.integers(96, 512))
        hidden, scores = 4 * batch * length * width, 4 * batch * heads * length * length
        saved = [take(hidden)]
        for _ in range(layers):
            kept = take(hidden, 3 * hidden)
            temporary = take(scores, scores)
            kept += take(scores // 4, scores)
            free(temporary)
            kept += take(hidden, hidden, hidden // 4, hidden, 4 * hidden, 4 * hidden)
            workspace = take(8 * _MIB)
            kept += take(hidden)
            free(workspace)
            saved.append(kept)
        logits = take(*[batch * length * words // 2] * 2)
        gradients = take(4 * words * width)
        free(logits)
        flowing = take(hidden)
        while saved:
            kept = saved.pop()
            for factor in (4, 4, 1, 3):
                gradients += take(4 * width * width * factor) if saved else []
                before, flowing = flowing, take(hidden * factor)
                temporary = take(scores if factor == 1 else hidden)
                free(kept[-3:])
                del kept[-3:]
                free([*temporary, *before])
            free(kept)
        free(flowing)
        if not moments:
            take(*weights, *weights)
            moments = True
        for size in weights[::7]:
            free(take(size, size))
        free(gradients)
    return program.events


def _train_convnet(steps: int) -> Events:
    """Return the training of a convolutional network on batches of images, whose number changes from step to step."""
    random = np.random.default_rng(_SEED)
    program = _Program()
    take, free = program.take, program.free
    blocks = [
        (inner, outer, side)
        for inner, outer, side, repeats in ((64, 256, 56, 3), (128, 512, 28, 4), (256, 1024, 14, 6), (512, 2048, 7, 3))
        for _ in range(repeats)
    ]
    weights = [size for inner, outer, _ in blocks for size in (4 * inner * outer, 36 * inner * inner, 4 * outer)]
    take(*weights)
    moments = False
    for _ in range(steps):
        batch = int(random.integers(24, 96))
        kept = take(4 * batch * 3 * 224 * 224, *[4 * batch * 64 * 112 * 112] * 2)
        saved = []
        for place, (inner, outer, side) in enumerate(blocks):
            for channels in (inner, inner, outer):
                output = take(4 * batch * channels * side * side)
                free(take(((channels + 31 * place) % 60 + 1) * _MIB))  # a workspace
                saved.append((channels, outer, side, output + take(4 * batch * channels * side * side)))
        gradients = []
        flowing = take(4 * batch * 2048 * 7 * 7)
        while saved:
            channels, outer, side, used = saved.pop()
            before, flowing = flowing, take(4 * batch * channels * side * side)
            workspace = take(((channels + 37 * len(saved)) % 70 + 1) * _MIB)
            gradients += take(4 * channels * outer)
            free([*workspace, *used, *before])
        free([*kept, *flowing])
        if not moments:
            take(*weights)
            moments = True
        free(gradients)
    return program.events


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
"""Recordings of inference by real programs, which ``data/README.md`` describes."""

STEPS: dict[str, Callable[[], Events]] = {
    **{name: functools.partial(read_trace, _DATA / f"{name}.npz") for name in ("vit_train", "diffusion_sample")},
    "train_transformer": functools.partial(_train_transformer, 8, 768, 8),
    "train_convnet": functools.partial(_train_convnet, 8),
}
"""Programs that repeat a step: two recordings, and two made-up ones with sizes of the layers of a network."""

ARRAYS: dict[str, Callable[[], Events]] = {
    name: functools.partial(read_trace, _DATA / f"{name}.npz") for name in ARRAY_PROGRAMS
}
"""Recordings of whole programs of CuPy."""

WORKLOADS = {**COLD, **CHURNS, **TRACES, **STEPS, **ARRAYS}
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
