"""The time of calls over several devices until all devices are idle: of tcuda, of plain CuPy, and of torch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import comm_sides
import pytest
from chosen_runtime import ON_CUDA
from comm_calls import CALLS
from machine import machine

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

    from comm_calls import CommCall
    from pytest_benchmark.fixture import BenchmarkFixture

DEVICES = [count for count in (2, 4) if ON_CUDA and tcuda.device_count() >= count]
SIDES = comm_sides.present() if DEVICES else ("tcuda",)

_BUDGET = 0.15  # seconds
_FEWEST, _MOST = 15, 1000
_WARM_UP = 0.1  # seconds, after which GPUs that were idle have their full clocks

pytestmark = pytest.mark.skipif(not DEVICES, reason="needs two GPUs")


def once(call: CommCall, side: comm_sides.CommSide) -> Callable[[], None]:
    """Return a function that makes one call and waits for all devices, in a scope of its own."""
    scope = dict(side.names)
    statement = getattr(call, side.spelling)
    exec(f"def once():\n    {_kept(statement)}\n    wait()", scope)
    function: Callable[[], None] = scope["once"]
    return function


def _kept(statement: str) -> str:
    """Return ``statement`` with its result in a variable, so that its memory is freed after the measurement."""
    *before, last = statement.split("; ")
    return "; ".join([*before, last if last.startswith("made = ") else f"made = {last}"])


def rounds(function: Callable[[], None]) -> int:
    """Warm up, and return how many rounds fit into one benchmark."""
    end = time.perf_counter() + _WARM_UP
    while time.perf_counter() < end:
        function()
    start = time.perf_counter()
    function()
    return max(_FEWEST, min(_MOST, int(_BUDGET / (time.perf_counter() - start))))


@pytest.mark.benchmark(disable_gc=True)
@pytest.mark.parametrize("on", SIDES)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("devices", DEVICES)
def test_comm(benchmark: BenchmarkFixture, call: str, devices: int, on: str) -> None:
    benchmark.group = f"{call}, {devices} devices"
    benchmark.extra_info |= machine()
    benchmark.extra_info["comm"] = {"call": call, "devices": devices, "on": on}
    wanted = CALLS[call]
    side = comm_sides.made(on, devices, wanted)
    side.begin()
    try:
        function = once(wanted, side)
        benchmark.pedantic(function, rounds=rounds(function))
    finally:
        side.end()
