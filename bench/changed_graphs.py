"""The time of a changed graph beside that of a new capture: ``python bench/changed_graphs.py``.

The graph is a chain of additions to one array. All programs end with a replay on an array that the graph has not used
before, or with other parameters:

* ``capture``: a capture of the chain, its instantiation, and a replay.
* ``replace``: ``graph.replace()`` of the array, and a replay.
* ``update``: ``graph.update()`` from another capture, and a replay. The time of that capture is left out.

The programs take turns. The tool prints the median times on the host until the replay is launched, and the parts of the
time of a capture.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import TYPE_CHECKING, Any

import chosen_runtime  # noqa: F401  # chooses the runtime
from machine import machine
from table import plain

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (10, 100, 1000)
"""The nodes of the graphs."""


class Programs:
    """The programs, each a method that returns the seconds that it has taken.

    Args:
        nodes: The nodes of the graph.
    """

    def __init__(self, nodes: int) -> None:
        xp = tcuda.xp
        self.nodes = nodes
        self.arrays = [xp.zeros(1000, "float32") for _ in range(2)]
        self.replaced, self.updated = self.captured(), self.captured()
        self.replaced.replay()
        self.updated.replay()

    def captured(self) -> tcuda.CUDAGraph:
        """Return a captured graph that is not instantiated."""
        graph = tcuda.CUDAGraph(keep_graph=True)
        with tcuda.graph(graph):
            x = self.arrays[0]
            for _ in range(self.nodes):
                x += 1
        return graph

    def capture(self) -> float:
        """Capture the chain, instantiate the graph and replay it."""
        tcuda.synchronize()
        begin = time.perf_counter()
        graph = self.captured()
        graph.replay()
        return time.perf_counter() - begin

    def replace(self) -> float:
        """Replace the array and replay."""
        old, new = self.arrays
        tcuda.synchronize()
        begin = time.perf_counter()
        self.replaced.replace(old, new)
        self.replaced.replay()
        taken = time.perf_counter() - begin
        self.arrays.reverse()
        return taken

    def update(self) -> float:
        """Take over another capture and replay."""
        other = self.captured()
        tcuda.synchronize()
        begin = time.perf_counter()
        self.updated.update(other)
        self.updated.replay()
        return time.perf_counter() - begin

    def total(self) -> float:
        """Return the sum of the first elements of both arrays."""
        return float(self.arrays[0][0]) + float(self.arrays[1][0])

    def named(self) -> dict[str, Callable[[], float]]:
        """Return the programs by their names in the table."""
        return {"capture": self.capture, "replace": self.replace, "update": self.update}


def measure(nodes: int, rounds: int) -> dict[str, float]:
    """Return the median seconds of each program for a graph of ``nodes`` nodes."""
    measured = Programs(nodes)
    programs = measured.named()
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for round in range(rounds + 2):
        for name, program in programs.items():
            before = measured.total()
            seconds = program()
            if measured.total() != before + nodes:
                raise RuntimeError(f"{name} did not do the work of {nodes} nodes.")
            if round >= 2:  # the first rounds load kernels and take memory
                taken[name].append(seconds)
    return {name: statistics.median(each) for name, each in taken.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=51, help="the rounds of each measurement")
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES, help="the nodes of the graphs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    results: dict[str, Any] = {str(nodes): measure(nodes, options.rounds) for nodes in options.nodes}
    if options.json:
        print(json.dumps({"machine": machine(), "seconds": results}))
        return
    rows = [
        (nodes, name, f"{seconds * 1e6:.1f}", f"{seconds / taken['capture']:.3f}")
        for nodes, taken in results.items()
        for name, seconds in taken.items()
    ]
    print(plain([("nodes", "program", "us", "of a capture"), *rows]))


if __name__ == "__main__":
    main()
