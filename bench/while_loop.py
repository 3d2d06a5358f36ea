"""The time of 20 rounds of work, which the device or the host repeats: ``python bench/while_loop.py``.

Each round is an addition and the update of a counter. Four programs do the same 20 rounds:

* ``one replay of a loop``: a graph with ``tcuda.graphs.while_loop``. The device ends the loop.
* ``20 replays``: a graph of one round. The host knows the number of rounds.
* ``20 replays, flag read``: a graph of one round. The host copies the flag after each round to end the loop.
* ``while_loop outside of captures``: launches of kernels, and a copy of the flag after each round.

The tool prints the time on the host until the last call has returned, and the time until the device is done.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import TYPE_CHECKING, Any

from chosen_runtime import ON_CUDA
from machine import machine
from table import plain

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 20


class Programs:
    """The programs, each a method without arguments that does all rounds.

    Args:
        size: The elements of the array to which each round adds.
    """

    def __init__(self, size: int) -> None:
        xp = tcuda.xp
        self.x = xp.zeros(size, "float32")
        self.left = xp.zeros((), "int32")
        self.loop, self.single = tcuda.CUDAGraph(), tcuda.CUDAGraph()
        with tcuda.graph(self.loop):
            self.left.fill(ROUNDS)
            tcuda.graphs.while_loop(self.left, self.round)
        with tcuda.graph(self.single):
            self.round()

    def round(self) -> None:
        """Launch the work of one round."""
        self.x += 1
        self.left -= 1

    def one_replay_of_a_loop(self) -> None:
        """Replay the graph of the loop."""
        self.loop.replay()

    def replays(self) -> None:
        """Replay the graph of one round, as often as the host knows."""
        self.left.fill(ROUNDS)
        for _ in range(ROUNDS):
            self.single.replay()

    def replays_until_the_flag_is_zero(self) -> None:
        """Replay the graph of one round, and copy the flag after each replay."""
        self.left.fill(ROUNDS)
        while self.left.item():
            self.single.replay()

    def eager(self) -> None:
        """Let the host repeat launches of kernels."""
        self.left.fill(ROUNDS)
        tcuda.graphs.while_loop(self.left, self.round)

    def named(self) -> dict[str, Callable[[], None]]:
        """Return the programs by their names in the table."""
        return {
            "one replay of a loop": self.one_replay_of_a_loop,
            f"{ROUNDS} replays": self.replays,
            f"{ROUNDS} replays, flag read": self.replays_until_the_flag_is_zero,
            "while_loop outside of captures": self.eager,
        }


def measure(size: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds on the host and until the end of the work, by program.

    Raises:
        RuntimeError: A program has not done all rounds.
    """
    programs = Programs(size)
    found: dict[str, tuple[float, float]] = {}
    for name, program in programs.named().items():
        before = float(programs.x[0])
        host, whole = [], []
        for _ in range(repeats):
            tcuda.synchronize()
            begin = time.perf_counter()
            program()
            returned = time.perf_counter()
            tcuda.synchronize()
            whole.append(time.perf_counter() - begin)
            host.append(returned - begin)
        done = float(programs.x[0]) - before
        if done != ROUNDS * repeats:
            raise RuntimeError(f"{name} did {done:g} rounds in place of {ROUNDS * repeats}.")
        found[name] = statistics.median(host), statistics.median(whole)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1 << 10, help="the elements of the array (1024)")
    parser.add_argument("--repeats", type=int, default=300 if ON_CUDA else 20, help="the runs of each program")
    parser.add_argument("--json", action="store_true", help="print the figures and the machine as JSON")
    options = parser.parse_args()
    found = measure(options.size, options.repeats)
    if options.json:
        figures: dict[str, Any] = {name: {"host": host, "whole": whole} for name, (host, whole) in found.items()}
        print(json.dumps({"machine": machine(), "rounds": ROUNDS, "seconds": figures}))
        return
    rows = [("20 rounds, µs", "host", "until done")]
    rows += [(name, f"{host * 1e6:.1f}", f"{whole * 1e6:.1f}") for name, (host, whole) in found.items()]
    print(plain(rows))


if __name__ == "__main__":
    main()
