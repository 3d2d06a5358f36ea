"""How the cost of calls grows with what is alive: ``python bench/growth.py [--million]``.

The cost of a call must follow from the work that the call asks for, and not from the blocks, streams and graphs that
the program keeps. The tool measures calls beside a few of these objects and beside many. Each figure is the smallest of
many turns, because other programs can only make a turn longer. The exit status is 1 if a call costs more than
``MOST_GROWTH`` (``targets.py``) times as much beside the most objects as beside the fewest.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from chosen_runtime import ON_CUDA
from table import markdown, plain
from targets import MOST_GROWTH

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS = (1_000, 10_000, 100_000)
MILLION = 1_000_000
STREAMS = (1, 10, 100, 1_000)
GRAPHS = (1, 10, 100, 1_000)

_MEMORY = "16GiB"  # for a thousand graphs with an array each; the host gives memory only where a program writes
_TURNS, _RETRIES = 15, 3
_SECONDS = 0.3e-3  # of a turn
_BLOCK = 929_792  # by the golden ratio, a simple hash puts evenly spaced blocks of this size into few places of a table


class Curve(NamedTuple):
    """The costs of a call.

    Attributes:
        kept: What the program keeps: ``"blocks"``, ``"streams"`` or ``"graphs"``.
        call: The call.
        counts: How many of these objects the program keeps.
        costs: The cost of the call beside so many objects, in seconds.
    """

    kept: str
    call: str
    counts: list[int]
    costs: list[float]

    @property
    def growth(self) -> float:
        """The cost beside the most objects, as a multiple of the cost beside the fewest."""
        return self.costs[-1] / self.costs[0]


def fastest(call: Callable[[], object]) -> float:
    """Return the seconds of ``call`` in the fastest turn."""
    call()
    start = time.perf_counter()
    call()
    times = max(1, min(1000, int(_SECONDS / (time.perf_counter() - start))))
    best = float("inf")
    for _ in range(_TURNS):
        start = time.perf_counter()
        for _ in itertools.repeat(None, times):
            call()
        best = min(best, (time.perf_counter() - start) / times)
    return best


def calls() -> dict[str, Callable[[], object]]:
    """Return the measured calls by name, as functions without arguments."""
    allocate, delete = tcuda.caching_allocator_alloc, tcuda.caching_allocator_delete
    make_stream = tcuda.xp.cuda.Stream
    side, capturing = tcuda.Stream(), tcuda.stream(tcuda.Stream())
    x = tcuda.xp.zeros(100, tcuda.xp.float32)
    event = tcuda.Event()
    event.record()

    def recorded() -> None:
        x = tcuda.xp.empty(100, tcuda.xp.float32)
        tcuda.memory.record_stream(x, side)

    def stream_with_memory() -> None:
        made = make_stream(non_blocking=True)
        delete(allocate(1 << 10, stream=made.ptr))

    def captured() -> None:
        graph = tcuda.CUDAGraph()
        with capturing:
            graph.capture_begin()
            x.fill(1)
            graph.capture_end()

    return {
        "allocate and free 1 KiB": lambda: delete(allocate(1 << 10)),
        "allocate and free 3 MiB": lambda: delete(allocate(3 << 20)),
        "empty(100) that another stream uses": recorded,
        "cupy.cuda.Stream(), made and destroyed": lambda: make_stream(non_blocking=True),
        "the same with memory on the stream": stream_with_memory,
        "CUDAGraph() of a kernel, captured and destroyed": captured,
        "MemPool(), made and destroyed": tcuda.MemPool,
        "event.record()": event.record,
        "event.query()": event.query,
        "stream.wait_stream(s2)": lambda: side.wait_stream(tcuda.default_stream()),
        "mem_get_info()": tcuda.mem_get_info,
        "memory_allocated()": tcuda.memory_allocated,
        "memory_stats()": tcuda.memory_stats,
        "reset_peak_memory_stats()": tcuda.reset_peak_memory_stats,
    }


def keep_blocks(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` live blocks: 1,000 large ones, and small ones."""
    while len(kept) < count:
        kept.append(tcuda.xp.cuda.alloc(_BLOCK if len(kept) < BLOCKS[0] else 512))


def keep_streams(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` streams, each with a free block and a live block."""
    while len(kept) < count:
        stream = tcuda.xp.cuda.Stream(non_blocking=True)
        with stream:
            blocks = [tcuda.xp.cuda.alloc(size) for size in (512, 1024)]
        kept.append((blocks[0], stream))


def keep_graphs(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` graphs, each with an array in a pool of its own."""
    x = tcuda.xp.zeros(100, tcuda.xp.float32)
    with tcuda.stream(tcuda.Stream()):
        while len(kept) < count:
            graph = tcuda.CUDAGraph()
            graph.capture_begin()  # tcuda.graph() collects Python's garbage, too
            y = x + 1
            graph.capture_end()
            kept.append((graph, y))


KEPT: dict[str, tuple[tuple[int, ...], Callable[[int, list[Any]], None]]] = {
    "blocks": (BLOCKS, keep_blocks),
    "streams": (STREAMS, keep_streams),
    "graphs": (GRAPHS, keep_graphs),
}
"""What a program keeps: how many, and the function that makes them."""


def measure(kind: str, most: int | None = None) -> list[Curve]:
    """Return the curves of all calls for one kind of objects.

    Args:
        kind: A key of :data:`KEPT`.
        most: Measure beside so many objects, too.
    """
    counts, keep = KEPT[kind]
    counts += (most,) if most else ()
    measured = calls()
    costs: dict[str, list[float]] = {name: [] for name in measured}
    kept: list[Any] = []
    for count in counts:
        keep(count, kept)
        tcuda.synchronize()
        for name, call in measured.items():
            costs[name].append(fastest(call))
    # A cost beside many objects may be an accident, which the first figure did not have.
    for name, call in measured.items():
        for _ in range(_RETRIES):
            if costs[name][-1] > MOST_GROWTH * costs[name][0]:
                costs[name][-1] = min(costs[name][-1], fastest(call))
    kept.clear()
    tcuda.empty_cache()  # an emulated device maps new memory more slowly while thousands of pieces are mapped
    return [Curve(kind, name, list(counts), found) for name, found in costs.items()]


def measure_all(million: bool = False) -> list[Curve]:
    """Return all curves. Python's garbage collector is off meanwhile, because it looks at all objects of Python.

    Args:
        million: Whether to measure beside a million blocks, too.
    """
    gc.disable()
    try:
        return [curve for kind in KEPT for curve in measure(kind, MILLION if million and kind == "blocks" else None)]
    finally:
        gc.enable()


def too_steep(curves: list[Curve]) -> list[str]:
    """Return the calls whose cost grows by more than ``MOST_GROWTH``."""
    return [f"{curve.call} ({curve.kept}: {curve.growth:.1f})" for curve in curves if curve.growth > MOST_GROWTH]


def tables(curves: list[Curve], table: Callable[[Any], str]) -> str:
    """Return a table for each kind of objects, with the costs in microseconds."""
    texts = []
    for _, group in itertools.groupby(curves, lambda curve: curve.kept):
        of_kind = list(group)
        header = [
            f"microseconds beside ... {of_kind[0].kept}",
            *(f"{count:,}" for count in of_kind[0].counts),
            "growth",
        ]
        rows = [[c.call, *(f"{cost * 1e6:.2f}" for cost in c.costs), f"{c.growth:.2f}"] for c in of_kind]
        texts.append(table([header, *rows]))
    return "\n\n".join(texts)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="measure beside a million blocks, too")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--markdown", action="store_true", help="print the tables for a document")
    shape.add_argument("--json", action="store_true", help="print the curves as JSON")
    options = parser.parse_args(arguments)
    if not ON_CUDA:
        tcuda.emulation.enable(1, memory=_MEMORY)
    curves = measure_all(options.million)
    if options.json:
        print(json.dumps([curve._asdict() for curve in curves]))
    else:
        print(tables(curves, markdown if options.markdown else plain))
    steep = too_steep(curves)
    if steep:
        print(f"more than {MOST_GROWTH} times as much beside many: {', '.join(steep)}", file=sys.stderr)
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
