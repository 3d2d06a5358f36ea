"""The cost of operations on emulated arrays, beside the same operations on NumPy's arrays."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from chosen_runtime import ON_CUDA
from loop import inlined, rounds, seconds_per_call
from machine import machine
from reference import Reference

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from loop import Loop
    from pytest_benchmark.fixture import BenchmarkFixture

SMALL = {
    "x + 1 of 100 floats": "x + 1",
    "x + x of 100 floats": "x + x",
    "add(x, 1, out=y) of 100 floats": "xp.add(x, 1, out=y)",
    "sqrt(x) of 100 floats": "xp.sqrt(x)",
    "x.sum() of 100 floats": "x.sum()",
    "x[1:] of 100 floats": "x[1:]",
    "empty() of 100 floats": "xp.empty(100)",
}
"""Statements for ``x`` and ``y``, arrays of ``xp``, which is the array library."""

LARGE = {"x + 1 of 10 million floats": "x + 1"}
"""Statements that are measured one by one."""

SIDES = ("tcuda", "below")

pytestmark = pytest.mark.skipif(ON_CUDA, reason="NumPy is the layer below emulated arrays only")


@pytest.mark.benchmark(timer=seconds_per_call, disable_gc=True)
@pytest.mark.parametrize("on", SIDES)
@pytest.mark.parametrize("operation", SMALL)
def test_small_operation(benchmark: BenchmarkFixture, operation: str, on: str) -> None:
    _measure(benchmark, operation, on, lambda side: inlined(SMALL[operation], _names(side, 100)), seconds_per_call)


@pytest.mark.benchmark(timer=time.perf_counter, disable_gc=True)
@pytest.mark.parametrize("on", SIDES)
@pytest.mark.parametrize("operation", LARGE)
def test_large_operation(benchmark: BenchmarkFixture, operation: str, on: str) -> None:
    def loop(side: str) -> Loop:
        names = _names(side, 10_000_000)
        code = compile(LARGE[operation], operation, "eval")
        return lambda: eval(code, names)

    _measure(benchmark, operation, on, loop, time.perf_counter)


def _measure(
    benchmark: BenchmarkFixture, operation: str, on: str, loop_of: Callable[[str], Loop], timer: Callable[[], float]
) -> None:
    benchmark.group = operation
    benchmark.extra_info |= machine()
    loop, below = loop_of(on), loop_of("below")
    reference = Reference(below, timer)
    benchmark.pedantic(loop, setup=reference.run, rounds=rounds(loop, below))
    reference.compare(benchmark)


def _names(side: str, size: int) -> dict[str, object]:
    xp = tcuda.xp if side == "tcuda" else np
    return {"xp": xp, "x": xp.ones(size), "y": xp.ones(size)}
