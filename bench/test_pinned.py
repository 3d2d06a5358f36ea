"""Bounds of page-locked memory beside CuPy's pool: the time, the memory that is locked, and the smallest limit."""

from __future__ import annotations

import pytest
from pinned import SIZES, Own, Pool, churn, libraries, smallest_limit, time_of, time_of_new


@pytest.mark.parametrize("name", ["1 KiB", "1 MiB"])
def test_a_cached_block_takes_no_longer_than_in_a_pool(name: str) -> None:
    measured = libraries()
    own, other = (time_of(measured[library].allocate, SIZES[name]) for library in ("tcuda", "CuPy's pool"))
    assert own < 1.1 * other


def test_new_memory_takes_no_longer_than_in_a_pool() -> None:
    measured = libraries()
    assert time_of_new(measured["tcuda"]) < 1.2 * time_of_new(measured["CuPy's pool"])


def test_a_churn_locks_less_memory_than_a_pool() -> None:
    """The driver takes most of the time of a churn to lock memory and to unlock it."""
    measured = libraries()
    own, other = churn(measured["tcuda"]), churn(measured["CuPy's pool"])
    assert own.held == own.locked
    assert own.held < 0.85 * other.held


def test_a_churn_ends_with_little_more_memory_than_is_live() -> None:
    own, other = smallest_limit(Own.make().library()), smallest_limit(Pool().library())
    assert own < 1.1
    assert own < 0.85 * other
