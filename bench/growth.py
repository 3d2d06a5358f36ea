"""How the cost of calls grows with what is alive: ``python bench/growth.py [--million]``.

The cost of a call must follow from the work that the call asks for, and not from the blocks, streams and graphs that
the program keeps, or from the operations that it has made before. The tool measures calls beside a few of these objects
and beside many. Each figure is the smallest of many turns, because other programs can only make a turn longer. The exit
status is 1 if a call costs more than ``MOST_GROWTH`` (``targets.py``) times as much beside the most objects as beside
the fewest. Calls that take many arrays are measured with few of them and with many, and each figure is the cost for one
array.

On emulated devices, the tool measures in four processes: as a program runs usually, with the check of unwritten memory,
with the late schedule, and under the race detector.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from chosen_runtime import ON_CUDA
from table import markdown, plain
from targets import MOST_GROWTH

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

BLOCKS = (1_000, 10_000, 100_000)
MILLION = 1_000_000
OBJECTS = (1, 10, 100, 1_000)
OPERATIONS = (1_000, 10_000, 100_000)
ELEMENTS = (1_000, 100_000, 10_000_000)
ARRAYS = (100, 1_000, 10_000)

_MEMORY = "16GiB"  # for a thousand graphs with an array each; the host gives memory only where a program writes
_TURNS, _RETRIES = 15, 3
_SECONDS = 0.3e-3  # of a turn
_BLOCK = 929_792  # by the golden ratio, a simple hash puts evenly spaced blocks of this size into few places of a table
_STREAMS = 8
_PART = 64
_KERNELS = """
extern "C" __global__ void add(float *x) { x[threadIdx.x] += 1; }
extern "C" __global__ void follow(float **x) { x[0][threadIdx.x] += 1; }
"""


class Curve(NamedTuple):
    """The costs of a call.

    Attributes:
        kept: What the program keeps: a key of :data:`KEPT`.
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
        **({} if ON_CUDA else work()),
    }


def work() -> dict[str, Callable[[], object]]:
    """Return calls that give emulated devices work, and that wait for work."""
    xp = tcuda.xp
    module = xp.RawModule(code=_KERNELS)
    add, follow = module.get_function("add"), module.get_function("follow")
    x = xp.zeros(64, xp.float32)
    addresses = xp.array([x[16:].data.ptr], xp.uint64)  # x is a new block, behind what the program keeps
    side = tcuda.Stream()

    def on_side() -> None:
        side.wait_stream(tcuda.default_stream())
        with side:
            x.fill(1)
        tcuda.default_stream().wait_stream(side)

    return {
        "empty(64)": lambda: xp.empty(64, xp.float32),
        "x.fill(1)": lambda: x.fill(1),
        "x.fill(1) on another stream, with waits": on_side,
        "x + 1": lambda: x + 1,
        "x.get()": x.get,
        "launch of a kernel": lambda: add((1,), (32,), (x,)),
        "launch of a kernel that follows a pointer": lambda: follow((1,), (32,), (addresses,)),
        "synchronize()": tcuda.synchronize,
        "cudaMalloc and cudaFree of 1 KiB": lambda: xp.cuda.runtime.free(xp.cuda.runtime.malloc(1 << 10)),
    }


def keep_blocks(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` live blocks: 1,000 large ones, and small ones."""
    while len(kept) < count:
        kept.append(tcuda.xp.cuda.alloc(_BLOCK if len(kept) < BLOCKS[0] else 512))


def keep_partly_written(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` blocks, of which one half is written."""
    while len(kept) < count:
        kept.append(tcuda.xp.empty(8, tcuda.xp.float32))
        kept[-1][:4] = 0


def parts() -> dict[str, Callable[[], object]]:
    """Return calls that use a few elements of a large array, of which one half is written."""
    xp = tcuda.xp
    array, add = _USED[0], xp.RawModule(code=_KERNELS).get_function("add")
    part, unwritten = array[:_PART], xp.empty(_PART, xp.float32)
    unwritten[: _PART // 2] = 0
    places = xp.arange(_PART)
    return {
        "x.fill(1)": lambda: part.fill(1),
        "x += 1": lambda: xp.add(part, 1, out=part),
        "x[:] = y, partly written": lambda: xp.copyto(array[_PART : 2 * _PART], unwritten),
        "x.get()": part.get,
        "x[i]": lambda: array[places],
        "x[i] = 1": lambda: array.__setitem__(places, 1),
        "launch of a kernel": lambda: add((1,), (32,), (array,)),
    }


def keep_page_locked(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` page-locked blocks of the host, which are large enough for segments of their own."""
    while len(kept) < count:
        kept.append(tcuda.xp.cuda.alloc_pinned_memory(1 << 20))


def keep_streams(count: int, kept: list[Any], *, blocking: bool = False) -> None:
    """Let ``kept`` have ``count`` streams, each with a free block and a live block.

    Args:
        count: The number of streams.
        kept: What the program keeps.
        blocking: Whether the streams and the default stream wait for each other.
    """
    while len(kept) < count:
        stream = tcuda.xp.cuda.Stream(non_blocking=not blocking)
        with stream:
            blocks = [tcuda.xp.cuda.alloc(size) for size in (512, 1024)]
        kept.append((blocks[0], stream))


def keep_blocking_streams(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` streams as :func:`keep_streams`, for which the default stream waits."""
    keep_streams(count, kept, blocking=True)


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


def make_operations(count: int, made: list[Any]) -> None:
    """Make operations until ``made`` has ``count`` entries: kernels, copies and waits on several streams."""
    x, y = (tcuda.xp.zeros(64, tcuda.xp.float32) for _ in range(2))
    streams = [tcuda.Stream() for _ in range(_STREAMS)]
    streams[(len(made) - 1) % _STREAMS].wait_stream(tcuda.default_stream())
    while len(made) < count:
        number = len(made)
        stream = streams[number % _STREAMS]
        stream.wait_stream(streams[(number - 1) % _STREAMS])
        with stream:
            if number % 3 == 0:
                x += 1
            elif number % 3 == 1:
                y[:] = x
            else:
                y.fill(number)
        made.append(None)
    tcuda.synchronize()


_USED: list[Any] = []
"""The arrays that the calls of :func:`parts` and of :func:`joins` use."""


def make_larger(count: int, kept: list[Any]) -> None:
    """Make an array of ``count`` elements, of which one half is written, in the place of a smaller one."""
    _USED[:] = [tcuda.xp.empty(max(count, 2 * _PART), tcuda.xp.float32)]
    _USED[0][: count // 2] = 0


def keep_arrays(count: int, kept: list[Any]) -> None:
    """Let ``kept`` have ``count`` small arrays."""
    kept += [tcuda.xp.zeros(8, tcuda.xp.float32) for _ in range(count - len(kept))]
    _USED[:] = kept


def joins() -> dict[str, Callable[[], object]]:
    """Return calls that join the arrays to one, or copy one array to them."""
    arrays, joined = _USED, tcuda.comm.gather(_USED)
    return {
        "gather(arrays)": lambda: tcuda.comm.gather(arrays),
        "scatter(x, out=arrays)": lambda: tcuda.comm.scatter(joined, out=arrays),
    }


class Kept(NamedTuple):
    """What a program keeps, or has done.

    Attributes:
        counts: How many.
        keep: Makes them: takes the number, and the list of those that there are.
        calls: Returns the measured calls.
        mode: A key of :data:`MODES`.
        each: Whether a call uses all of them. The cost is then that for each of them.
    """

    counts: tuple[int, ...]
    keep: Callable[[int, list[Any]], None]
    calls: Callable[[], dict[str, Callable[[], object]]] = calls
    mode: str = "usual"
    each: bool = False


KEPT: dict[str, Kept] = {
    "blocks": Kept(BLOCKS, keep_blocks),
    "streams": Kept(OBJECTS, keep_streams),
    "graphs": Kept(OBJECTS, keep_graphs),
    "arrays of the call, for each array": Kept(ARRAYS, keep_arrays, joins, each=True),
    "blocking streams": Kept(OBJECTS, keep_blocking_streams, work, "emulated"),
    "page-locked blocks": Kept(OBJECTS, keep_page_locked, work, "emulated"),
    "partly written blocks, with init checks": Kept(BLOCKS, keep_partly_written, work, "init"),
    "elements of an array that is partly written, with init checks": Kept(ELEMENTS, make_larger, parts, "init"),
    "blocks, with the late schedule": Kept(BLOCKS, keep_blocks, work, "late"),
    "blocking streams, with the late schedule": Kept(OBJECTS, keep_blocking_streams, work, "late"),
    "operations before, under the race detector": Kept(OPERATIONS, make_operations, work, "detector"),
}
"""What a program keeps, by a name for the table."""

MODES: dict[str, dict[str, str]] = {
    "usual": {},
    "emulated": {},
    "init": {"TCUDA_EMULATED_CHECKS": "memory,init"},
    "late": {"TCUDA_EMULATED_SCHEDULE": "late"},
    "detector": {},
}
"""The environment of the processes that measure. A mode other than the first needs emulated devices."""


def here() -> list[str]:
    """Return the keys of :data:`KEPT` that can be measured on this machine."""
    return [kind for kind, kept in KEPT.items() if kept.mode == "usual" or not ON_CUDA]


def measure(kind: str, most: int | None = None) -> list[Curve]:
    """Return the curves of all calls for one kind of objects.

    Args:
        kind: A key of :data:`KEPT`.
        most: Measure beside so many objects, too.
    """
    counts, keep, make_calls, _, each = KEPT[kind]
    counts += (most,) if most else ()
    costs: dict[str, list[float]] = {}
    measured: dict[str, Callable[[], object]] = {}
    kept: list[Any] = []
    for count in counts:
        keep(count, kept)
        measured = make_calls()
        tcuda.synchronize()
        for name, call in measured.items():
            costs.setdefault(name, []).append(fastest(call) / (count if each else 1))
    # A cost beside many objects may be an accident, which the first figure did not have.
    for name, call in measured.items():
        for _ in range(_RETRIES):
            if costs[name][-1] > MOST_GROWTH * costs[name][0]:
                costs[name][-1] = min(costs[name][-1], fastest(call) / (counts[-1] if each else 1))
    kept.clear()
    measured.clear()
    tcuda.empty_cache()  # an emulated device maps new memory more slowly while thousands of pieces are mapped
    return [Curve(kind, name, list(counts), found) for name, found in costs.items()]


def measure_all(mode: str, million: bool = False) -> list[Curve]:
    """Return all curves of a mode. Python's garbage collector is off meanwhile, because it looks at all objects.

    Args:
        mode: A key of :data:`MODES`.
        million: Whether to measure beside a million blocks, too.
    """
    watched: AbstractContextManager[object] = contextlib.nullcontext()
    if mode == "detector":
        import tcuda.sanitizer

        watched = tcuda.sanitizer.check()
    gc.disable()
    try:
        with watched:
            kinds = [kind for kind, kept in KEPT.items() if kept.mode == mode]
            most = {"blocks": MILLION} if million else {}
            return [curve for kind in kinds for curve in measure(kind, most.get(kind))]
    finally:
        gc.enable()


def measure_modes(million: bool = False) -> list[Curve]:
    """Return the curves of all modes, each of which has a process of its own.

    Args:
        million: Whether to measure beside a million blocks, too.
    """
    curves = []
    for mode, environment in MODES.items():
        if ON_CUDA and mode != "usual":
            continue
        command = [sys.executable, __file__, "--json", "--mode", mode, *(["--million"] if million else [])]
        # The exit status says that a call was too steep, which the caller sees by the curves.
        done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=False)
        curves += [Curve(**each) for each in json.loads(done.stdout)]
    return curves


_OF_EACH_POOL = ("memory_stats()", "reset_peak_memory_stats()")
"""The calls for the figures of each private pool, as torch has them. Each of the graphs has a pool."""


def too_steep(curves: list[Curve]) -> list[str]:
    """Return the calls whose cost grows by more than ``MOST_GROWTH``, without those for each of the graphs."""
    return [
        f"{curve.call} ({curve.kept}: {curve.growth:.1f})"
        for curve in curves
        if curve.growth > MOST_GROWTH and not (curve.kept == "graphs" and curve.call in _OF_EACH_POOL)
    ]


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
    parser.add_argument("--mode", choices=MODES, help="measure this mode only, in this process")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--markdown", action="store_true", help="print the tables for a document")
    shape.add_argument("--json", action="store_true", help="print the curves as JSON")
    options = parser.parse_args(arguments)
    if options.mode is None:
        curves = measure_modes(options.million)
    else:
        if not ON_CUDA:
            tcuda.emulation.enable(1, memory=_MEMORY)
        curves = measure_all(options.mode, options.million)
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
