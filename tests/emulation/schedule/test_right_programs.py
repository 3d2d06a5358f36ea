"""Random programs with all their waits: both schedules give the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.emulated


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_programs_give_the_same_bits_late(seed: int, output_with: Callable[..., str]) -> None:
    eager = output_with("eager", "random_programs.py", "1", "20")
    assert len(set(eager.split())) == 20
    assert output_with(f"late:{seed}", "random_programs.py", "1", "20") == eager


@pytest.mark.long
def test_the_programs_without_their_waits_give_other_bits_late(output_with: Callable[..., str]) -> None:
    arguments = "random_programs.py", "1", "10", "without"
    eager, late = (output_with(schedule, *arguments).split() for schedule in ("eager", "late"))
    assert eager == output_with("eager", "random_programs.py", "1", "20").split()[:10]
    assert sum(was != got for was, got in zip(eager, late, strict=True)) >= 8
