"""A graph that is changed and replayed takes a small part of the time of another capture."""

from __future__ import annotations

import pytest
from changed_graphs import MOST, SIZES, measure
from chosen_runtime import ON_CUDA


@pytest.mark.skipif(not ON_CUDA, reason="the bound is for CUDA")
@pytest.mark.parametrize("nodes", [size for size in SIZES if size >= 100])
def test_a_change_takes_less_than_a_tenth_of_a_capture(nodes: int) -> None:
    taken = measure(nodes, 31)
    parts = {name: taken[name] / taken["capture"] for name in ("replace", "update")}
    assert max(parts.values()) < MOST, f"{taken} {parts}"
