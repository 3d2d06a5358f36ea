"""The time of captures of graphs, step by step: of tcuda, of CuPy's own captures, and of torch.

``python bench/captures.py`` prints a table. The sides take turns, so that a slow moment of the machine meets all of
them. On emulated devices, the captures of CuPy are those of the streams that stand in for CuPy's.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from chosen_runtime import ON_CUDA
from sides import SIDES, side
from table import markdown

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sides import Side

TURNS = 60 if ON_CUDA else 8
CAPTURES = 20 if ON_CUDA else 3
"""The captures of a side in one turn."""


class Work(NamedTuple):
    """Work that is captured.

    Attributes:
        kernels: The name of the function that launches the kernels, in the names of a :class:`Side`.
        pool: The name of the pool whose memory the graph uses; None for a new pool for each graph.
        block: Whether the capture is a block of ``graph()``, and not two calls.
    """

    kernels: str
    pool: str | None = None
    block: bool = False


WORKS = {
    "20 kernels": Work("in_place"),
    "20 kernels and 20 arrays in a kept pool": Work("with_arrays", "handle"),
    "20 kernels and 20 arrays in a new pool": Work("with_arrays"),
    "20 kernels in a block of graph()": Work("in_place", block=True),
}


class Steps(NamedTuple):
    """The medians of the times of a capture, in microseconds.

    Attributes:
        begin: The begin of the capture.
        kernels: The launches in the capture.
        end: The end of the capture, with the instantiation of the graph.
        release: The end of the graph.
    """

    begin: float
    kernels: float
    end: float
    release: float


class Measured(NamedTuple):
    """What was measured of one side.

    Attributes:
        steps: The steps of a capture.
        whole: The median of the time of a whole capture, in microseconds.
        ratio: The median of the ratios of a whole capture to a capture of CuPy in the same turn.
    """

    steps: Steps
    whole: float
    ratio: float


def measure(work: Work) -> dict[str, Measured]:
    """Return what was measured of each side, by the name of the side."""
    sides = {name: side(name) for name in SIDES}
    captures = {name: _capture(name, each, work) for name, each in sides.items()}
    turns: dict[str, list[list[Steps]]] = {name: [] for name in sides}
    for turn in range(TURNS + 1):
        for name, each in sides.items():
            times = list(_turn(each, captures[name]))
            if turn:  # the first turn warms up
                turns[name].append(times)
    wholes = {name: [statistics.median(map(sum, times)) for times in each] for name, each in turns.items()}
    return {
        name: Measured(
            Steps(
                *(statistics.median(step) for step in zip(*(steps for times in each for steps in times), strict=True))
            ),
            statistics.median(wholes[name]),
            statistics.median(own / below for own, below in zip(wholes[name], wholes["below"], strict=True)),
        )
        for name, each in turns.items()
    }


def _turn(of: Side, capture: Callable[[], Steps]) -> Iterator[Steps]:
    of.begin()
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(CAPTURES):
            yield capture()
    finally:
        if collecting:
            gc.enable()
        of.rest()


def _capture(name: str, of: Side, work: Work) -> Callable[[], Steps]:
    kernels = of.names[work.kernels]
    if name == "below":
        return _by_cupy(of.names["s"] if ON_CUDA else tcuda.xp.cuda.Stream(non_blocking=True), kernels)
    if work.block:
        return _in_block(of.names["cuda"], of.names["s"], kernels)
    return _by_graph(of.names["cuda"], of.names["s"], kernels, None if work.pool is None else of.names[work.pool])


def _in_block(cuda: Any, stream: Any, kernels: Callable[[], None]) -> Callable[[], Steps]:
    def capture() -> Steps:
        now = time.perf_counter_ns
        start = now()
        graph = cuda.CUDAGraph()
        with cuda.graph(graph, stream=stream):
            begun = now()
            kernels()
            launched = now()
        ended = now()
        del graph
        return _steps(start, begun, launched, ended, now())

    return capture


def _by_graph(cuda: Any, stream: Any, kernels: Callable[[], None], pool: Any) -> Callable[[], Steps]:
    def capture() -> Steps:
        cuda.set_stream(stream)
        now = time.perf_counter_ns
        start = now()
        graph = cuda.CUDAGraph()
        graph.capture_begin(pool)
        begun = now()
        kernels()
        launched = now()
        graph.capture_end()
        ended = now()
        del graph
        return _steps(start, begun, launched, ended, now())

    return capture


def _by_cupy(stream: Any, kernels: Callable[[], None]) -> Callable[[], Steps]:
    def capture() -> Steps:
        stream.use()
        now = time.perf_counter_ns
        start = now()
        stream.begin_capture()
        begun = now()
        kernels()
        launched = now()
        graph = stream.end_capture()
        ended = now()
        del graph
        return _steps(start, begun, launched, ended, now())

    return capture


def _steps(*times: int) -> Steps:
    return Steps(*((after - before) / 1000 for before, after in itertools.pairwise(times)))


def main() -> None:
    """Print a table of all captures."""
    header = ("capture", "side", *Steps._fields, "whole", "of CuPy's")
    rows = [
        (title, name, *(f"{step:.1f}" for step in measured.steps), f"{measured.whole:.1f}", f"{measured.ratio:.3f}")
        for title, work in WORKS.items()
        for name, measured in measure(work).items()
    ]
    print(markdown([header, *rows]))


if __name__ == "__main__":
    main()
