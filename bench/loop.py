"""Loops around statements: the time of a call of 50 ns must not include the call of a Python function around it."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from chosen_runtime import ON_CUDA

if TYPE_CHECKING:
    from collections.abc import Callable

    Loop: TypeAlias = Callable[[], None]

CALLS = 100
"""The calls in one round of a loop; a round must not fill the queue of a stream, which holds about 1,000 calls."""

_SOURCE = """
def loop():
    for _ in repeat(None, times):
        {statement}
"""
_BUDGET = 0.2  # seconds
_FEWEST, _MOST = (20 if ON_CUDA else 5), 1500


def inlined(statement: str, names: dict[str, Any]) -> Loop:
    """Return a function that executes ``statement`` :data:`CALLS` times; the loop adds a few nanoseconds per call."""
    scope = {**names, "repeat": itertools.repeat, "times": CALLS}
    exec(_SOURCE.format(statement=statement), scope)
    loop: Loop = scope["loop"]
    return loop


def seconds_per_call() -> float:
    """Return the time for pytest-benchmark, divided by :data:`CALLS`, so that a round shows the seconds of one call."""
    return time.perf_counter() / CALLS


def rounds(*executed: Callable[[], None]) -> int:
    """Warm up the functions ``executed``, and return how many rounds of all of them fit into one benchmark."""
    for one in executed:
        one()
    start = time.perf_counter()
    for one in executed:
        one()
    return max(_FEWEST, min(_MOST, int(_BUDGET / (time.perf_counter() - start))))
