"""Whole programs with tcuda beside plain CuPy, on a GPU: ``python bench/whole_programs.py [--turns 20]``.

Each program runs in pairs of processes, of which one imports tcuda. The processes of a pair take turns, so that both
see the same speed of the machine. There are several pairs, because the place of a process in memory changes its speed
by up to a tenth. The tool prints a table, and its exit status is 1 if a program misses a bound.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from programs import PROGRAMS
from remote import on_one_core
from table import markdown, note

if TYPE_CHECKING:
    from collections.abc import Iterator

TURNS = 20
PAIRS = 3
SCALE = 8

MOST_TIME = 1.02
"""The most time of a program with tcuda, as a part of its time with CuPy."""

NOISE = 0.08
"""The medians of two measurements of a program differ by up to this part of the time."""

MOST_MEMORY = 20 << 20
"""The most bytes that tcuda may hold beyond what CuPy's pool holds: the step in which tcuda takes memory for large
arrays while the device has plenty."""

_WORKER = Path(__file__).with_name("program_worker.py")


class Comparison(NamedTuple):
    """The figures of a program.

    Attributes:
        tcuda: The median seconds of a run with tcuda.
        cupy: The median seconds of a run with plain CuPy.
        ratio: The median of the ratios of neighbouring runs.
        held_by_tcuda: The most bytes that tcuda reserved.
        held_by_cupy: The most bytes that CuPy's pool held.
    """

    tcuda: float
    cupy: float
    ratio: float
    held_by_tcuda: int
    held_by_cupy: int

    @property
    def fast_enough(self) -> bool:
        """Whether the program takes at most :data:`MOST_TIME` within :data:`NOISE`."""
        return self.ratio <= MOST_TIME + NOISE

    @property
    def small_enough(self) -> bool:
        """Whether tcuda holds at most :data:`MOST_MEMORY` more than CuPy."""
        return self.held_by_tcuda <= self.held_by_cupy + MOST_MEMORY


class Worker:
    """A process that runs a program at one side. The process ends with the ``with`` block of :func:`workers`."""

    def __init__(self, side: str, program: str) -> None:
        command = [sys.executable, str(_WORKER), side, program, str(SCALE)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ready(self) -> bool:
        """Wait for the first run, and return whether the libraries of the program are installed."""
        return not self._answer()

    def run(self) -> tuple[float, int]:
        """Run the program, and return the seconds and the bytes held."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        seconds, held = self._answer().split()
        return float(seconds), int(held)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self._process.args} has ended")
        return line.rstrip("\n")

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


Pairs: TypeAlias = "list[tuple[Worker, Worker]]"
"""The processes of a program: each pair has one with tcuda and one with plain CuPy."""


@contextlib.contextmanager
def workers(*names: str) -> Iterator[dict[str, Pairs]]:
    """Start the processes of the programs all at once, and end the processes after the block.

    The block begins after the first runs of all processes. The processes of a program whose libraries are not installed
    are left out.
    """
    made = {name: [(Worker("tcuda", name), Worker("cupy", name)) for _ in range(PAIRS)] for name in names}
    everyone = [worker for pairs in made.values() for pair in pairs for worker in pair]
    try:
        ready = {worker for worker in everyone if worker.ready()}
        yield {name: pairs for name, pairs in made.items() if ready.issuperset(itertools.chain(*pairs))}
    finally:
        for worker in everyone:
            worker.end()


def compare(pairs: Pairs, turns: int = TURNS) -> Comparison:
    """Run a program by turns, ``turns`` times in each process."""
    own, other = [], []
    for ours, theirs in pairs:
        with on_one_core(ours.pid, theirs.pid):
            for turn in range(turns):  # the side that begins changes: the second of a pair may find a warmer device
                first, second = (ours, theirs) if turn % 2 else (theirs, ours)
                found = {first: first.run(), second: second.run()}
                own.append(found[ours])
                other.append(found[theirs])
    return Comparison(
        statistics.median(seconds for seconds, _ in own),
        statistics.median(seconds for seconds, _ in other),
        statistics.median(mine[0] / neighbour[0] for mine, neighbour in zip(own, other, strict=True)),
        max(held for _, held in own),
        max(held for _, held in other),
    )


def _row(name: str, found: Comparison) -> tuple[str, ...]:
    times = [f"{1000 * seconds:.1f}" for seconds in (found.tcuda, found.cupy)]
    held = [f"{size / (1 << 20):.1f}" for size in (found.held_by_tcuda, found.held_by_cupy)]
    return (name, *times, f"{found.ratio:.3f}", *held, "yes" if found.fast_enough and found.small_enough else "NO")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each process runs its program")
    turns = parser.parse_args().turns
    with workers(*PROGRAMS) as made:
        compared: dict[str, Comparison] = {}
        for name, pairs in made.items():
            compared[name] = compare(pairs, turns)
            note(_row(name, compared[name]))
    header = ("program", "tcuda, ms", "CuPy, ms", "ratio", "tcuda, MiB", "CuPy, MiB", "met")
    print(markdown([header, *(_row(name, found) for name, found in compared.items())]))
    if left_out := PROGRAMS.keys() - compared:
        print(f"\nA library of these programs is not installed: {', '.join(sorted(left_out))}.")
    return 0 if all(found.fast_enough and found.small_enough for found in compared.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
