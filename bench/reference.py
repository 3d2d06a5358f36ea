"""The layer below, timed between the rounds of a benchmark.

What else a machine does can halve the speed of a core for seconds. It then halves that of two neighbouring rounds, and
their ratio stays.
"""

from __future__ import annotations

import gc
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture


class Reference:
    """A round of the layer below for each round of a benchmark.

    Args:
        execute: One round.
        timer: The timer of the benchmark.
        before: What comes before each round and is not timed.
        after: What comes after it.
    """

    def __init__(
        self,
        execute: Callable[[], None],
        timer: Callable[[], float],
        *,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._execute = execute
        self._timer = timer
        self._before = before
        self._after = after
        self._durations: list[float] = []

    def run(self) -> None:
        """Time one round; this belongs into the ``setup`` of the benchmark's rounds.

        Without garbage collection, which pytest-benchmark turns off for the rounds of the benchmark only.
        """
        self._before()
        collecting = gc.isenabled()
        gc.disable()
        start = self._timer()
        self._execute()
        self._durations.append(self._timer() - start)
        if collecting:
            gc.enable()
        self._after()

    def compare(self, benchmark: BenchmarkFixture) -> None:
        """Note, as the benchmark's extra information, what its rounds took as a multiple of their neighbours here."""
        if benchmark.stats is not None:  # as it is where pytest runs with --benchmark-disable
            rounds = benchmark.stats.stats.data
            neighbours = self._durations[-len(rounds) :]  # before them come those of the rounds that warm up
            ratios = [own / reference for own, reference in zip(rounds, neighbours, strict=True)]
            benchmark.extra_info["ratio"] = statistics.median(ratios)
