"""What each call costs: tcuda's, that of the layer below, and torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from calls import CALLS
from loop import inlined, rounds, seconds_per_call
from machine import machine
from reference import Reference
from sides import SIDES, side

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.benchmark(timer=seconds_per_call, disable_gc=True)
@pytest.mark.parametrize("on", SIDES)
@pytest.mark.parametrize("call", CALLS)
def test_call(benchmark: BenchmarkFixture, call: str, on: str) -> None:
    benchmark.group = call
    benchmark.extra_info |= machine()
    here, below = side(on), side("below")
    loop = inlined(here.statement(CALLS[call]), here.names)
    below_loop = inlined(below.statement(CALLS[call]), below.names)
    reference = Reference(below_loop, seconds_per_call)

    def before_round() -> None:
        reference.run()
        below.rest()

    try:
        benchmark.pedantic(loop, setup=before_round, teardown=here.rest, rounds=rounds(loop, below_loop))
    finally:
        here.rest()
        below.rest()
    reference.compare(benchmark)
