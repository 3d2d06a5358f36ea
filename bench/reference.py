"""The layer below, timed between the rounds of a benchmark.

Other programs can halve the speed of a core for seconds. Two neighbouring rounds are then slowed down by the same
factor, so their ratio stays the same.
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
        execute: Executes one round.
        timer: The timer of the benchmark.
        before: Called before each round; its time is not measured.
        after: Called after each round; its time is not measured.
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
        """Time one round without garbage collection; call this method in the ``setup`` of the benchmark's rounds.

        pytest-benchmark turns garbage collection off only for the rounds of the benchmark itself.
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
        """Store the median ratio of the benchmark's rounds to their neighbours here in its ``extra_info``."""
        if benchmark.stats is not None:  # None with --benchmark-disable
            rounds = benchmark.stats.stats.data
            neighbours = self._durations[-len(rounds) :]  # The first durations belong to the rounds that warm up.
            ratios = [own / reference for own, reference in zip(rounds, neighbours, strict=True)]
            benchmark.extra_info["ratio"] = statistics.median(ratios)
