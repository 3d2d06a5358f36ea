"""The cost of an operation that the race detector watches, beside the cost of its Python stack alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from chosen_runtime import ON_CUDA
from loop import inlined, rounds, seconds_per_call
from machine import machine
from reference import Reference
from watched import watched

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

PROGRAMS = {"watched operation of 2 arrays": False, "watched operation beside the default stream": True}
"""For each program, whether the legacy default stream takes part."""

STATEMENTS = {"tcuda": "work(*next(operations))", "below": "note_stack()"}


@pytest.mark.skipif(ON_CUDA, reason="bench/test_races_cuda.py measures the detector on CUDA")
@pytest.mark.benchmark(timer=seconds_per_call, disable_gc=True)
@pytest.mark.parametrize("on", STATEMENTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_watched(benchmark: BenchmarkFixture, program: str, on: str) -> None:
    benchmark.group = program
    benchmark.extra_info |= machine()
    detector, operations = watched(beside_default=PROGRAMS[program])
    names = {"work": detector.work, "operations": operations, "note_stack": detector.note_stack}
    loop, below = (inlined(STATEMENTS[side], names) for side in (on, "below"))
    reference = Reference(below, seconds_per_call)
    benchmark.pedantic(loop, setup=reference.run, rounds=rounds(loop, below))
    reference.compare(benchmark)
