"""What a ``tcuda.memory.Spillable`` costs, with bounds."""

from __future__ import annotations

import pytest
from spilling import hits, moves, program


def test_a_read_of_an_array_on_the_device_takes_less_than_a_microsecond() -> None:
    times = hits()
    assert times["an array that was never moved"] < 1000
    assert times["an array that came back"] < 1000


@pytest.mark.gpu
def test_moves_are_nearly_as_fast_as_copies() -> None:
    speeds = moves()
    copied, moved = speeds["copies between memory that exists"], speeds["moves, with memory of the cache"]
    assert moved.to_host > 0.75 * copied.to_host
    assert moved.to_device > 0.75 * copied.to_device


def test_a_program_with_one_and_a_half_times_the_memory_has_the_same_bits() -> None:
    assert program().same_bits
