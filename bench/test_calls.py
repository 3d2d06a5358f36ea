"""The cost of each call: of tcuda, of the layer below, and of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from calls import CALLS
from chosen_runtime import ON_CUDA
from loop import rounds, seconds_per_call
from machine import machine
from reference import Reference
from sides import SIDES, side
from subject import Subject

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.benchmark(timer=seconds_per_call, disable_gc=True)
@pytest.mark.parametrize("on", SIDES)
@pytest.mark.parametrize("call", [name for name, call in CALLS.items() if ON_CUDA or not call.cuda_only])
def test_call(benchmark: BenchmarkFixture, call: str, on: str) -> None:
    benchmark.group = call
    benchmark.extra_info |= machine()
    here, below = (Subject(CALLS[call], side(name)) for name in (on, "below"))
    reference = Reference(below.loop, seconds_per_call, before=below.begin, after=below.end)

    def before_round() -> None:
        reference.run()
        here.begin()

    try:
        count = rounds(here.round, below.round)
        benchmark.pedantic(here.loop, setup=before_round, teardown=here.end, rounds=count)
    finally:
        here.end()
        below.end()
    reference.compare(benchmark)
