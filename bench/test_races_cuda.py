"""The cost of the race detector on CUDA, beside plain CuPy in a process of its own, and beside torch's sanitizer.

The benchmarks have four states: *off*, before the first check of the process; *attached*, with a detector that is told
of all calls of the driver, and knows no memory; *checking*, in a check; *off again*, after the check.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest
from chosen_runtime import ON_CUDA
from loop import rounds, seconds_per_call
from machine import machine
from reference import Reference
from remote import Remote, on_one_core
from sides import SIDES
from watched_works import TRAINING, WORKS, of_cupy

import tcuda
from tcuda._core import RaceDetector
from tcuda._runtime import runtime
from tcuda.sanitizer._cuda.watch import watch_races

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

OFF, ATTACHED, CHECKING, OFF_AGAIN = "off", "attached", "checking", "off again"
DEMO = "demo"

_MOST_ROUNDS = 300  # the other process makes as many rounds in between
_ROUNDS_OF_THE_DEMO = 5
_timer: Callable[[], float] = seconds_per_call

pytestmark = pytest.mark.skipif(not ON_CUDA, reason="measures the race detector on CUDA")


def _clock() -> float:
    """Return the time of the timer of the measured side."""
    return _timer()


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    global _timer
    yield
    _timer = seconds_per_call


@contextlib.contextmanager
def watched(state: str) -> Iterator[None]:
    """Put the detector into ``state`` for a block of code."""
    if state == CHECKING:
        with tcuda.sanitizer.check(mode="collect") as report:
            yield
        assert not report
    elif state == ATTACHED:
        tcuda.init()
        watch_races(runtime(), RaceDetector(lambda race: None))
        try:
            yield
        finally:
            watch_races(runtime(), None)
    else:
        if state == OFF_AGAIN:
            with tcuda.sanitizer.check(mode="collect"):
                tcuda.xp.zeros(1)
        yield


@pytest.mark.benchmark(timer=_clock, disable_gc=True)
@pytest.mark.parametrize("on", SIDES)
@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("state", [OFF, ATTACHED, CHECKING, OFF_AGAIN])
def test_work(benchmark: BenchmarkFixture, state: str, work: str, on: str) -> None:
    global _timer
    if work == TRAINING and state == ATTACHED:
        pytest.skip("a training needs its memory known")
    benchmark.group = f"{work}, {state}"
    benchmark.extra_info |= machine()
    below = Remote("cupy", work)
    if on == "tcuda":
        with watched(state):  # arrays that are older than the check have no stack
            loop = of_cupy(tcuda.xp, work, tcuda.synchronize)
            with on_one_core(below.pid):
                _measure(benchmark, loop, below)
        return
    here = below if on == "below" else Remote("csan" if state == CHECKING else "torch", work)
    _timer = here.clock
    with on_one_core(below.pid, here.pid):
        _measure(benchmark, here.run, below)


def _measure(benchmark: BenchmarkFixture, loop: Callable[[], None], below: Remote) -> None:
    reference = Reference(below.run, below.clock)
    count = rounds(loop, below.run)
    benchmark.pedantic(loop, setup=reference.run, teardown=tcuda.synchronize, rounds=min(count, _MOST_ROUNDS))
    reference.compare(benchmark)


@pytest.mark.benchmark(timer=time.perf_counter, disable_gc=True)
@pytest.mark.parametrize("on", ["tcuda", "below"])
def test_demo(benchmark: BenchmarkFixture, on: str) -> None:
    """Measure the demo with a check; the layer below is the demo without a check."""
    from tcuda.demo import digits
    from tcuda.demo.config import Config
    from tcuda.demo.train import train

    benchmark.group = f"{DEMO}, {CHECKING}"
    benchmark.extra_info |= machine()
    read, config = digits.load(), Config(epochs=2, devices=1)

    def run() -> Any:
        return train(config, read)

    run()
    reference = Reference(run, time.perf_counter)
    checks = contextlib.ExitStack()

    def begin() -> None:
        reference.run()
        if on == "tcuda":
            checks.enter_context(watched(CHECKING))

    benchmark.pedantic(run, setup=begin, teardown=checks.close, rounds=_ROUNDS_OF_THE_DEMO)
    reference.compare(benchmark)
