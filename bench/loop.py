"""A statement in a loop of its own, so that a call of 50 ns is measured and not the calling of it."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from chosen_runtime import ON_CUDA

if TYPE_CHECKING:
    from collections.abc import Callable

    Loop: TypeAlias = Callable[[], None]

CALLS = 100
"""Calls in one round of a loop: few enough not to fill a stream's queue, which holds about a thousand."""

_SOURCE = """
def loop():
    for _ in repeat(None, times):
        {statement}
"""
_BUDGET = 0.2  # seconds
_FEWEST, _MOST = (20 if ON_CUDA else 5), 1500


def inlined(statement: str, names: dict[str, Any]) -> Loop:
    """Return a function that executes ``statement`` :data:`CALLS` times; the loop itself takes a few ns a time."""
    scope = {**names, "repeat": itertools.repeat, "times": CALLS}
    exec(_SOURCE.format(statement=statement), scope)
    loop: Loop = scope["loop"]
    return loop


def seconds_per_call() -> float:
    """Tell the time, for pytest-benchmark, in a unit in which one round takes as long as one call does in seconds."""
    return time.perf_counter() / CALLS


def rounds(*executed: Callable[[], None]) -> int:
    """Return how many rounds of all these fit into the time for one benchmark; also warms them up."""
    for one in executed:
        one()
    start = time.perf_counter()
    for one in executed:
        one()
    return max(_FEWEST, min(_MOST, int(_BUDGET / (time.perf_counter() - start))))
