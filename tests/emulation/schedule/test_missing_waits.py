"""Programs with and without a wait: the late schedule gives wrong numbers for each program that forgets the wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.emulated

NAMES = [
    line.removeprefix("def ").partition("(")[0]
    for line in Path(__file__).with_name("programs.py").read_text().splitlines()
    if line.startswith("def ") and "waits: bool" in line
]


@pytest.fixture
def numbers(output_with: Callable[..., str]) -> Callable[[str], Any]:
    """Return the numbers of all programs with a schedule."""
    return lambda schedule: json.loads(output_with(schedule, "programs.py"))


def test_every_program_is_run(numbers: Callable[[str], Any]) -> None:
    assert len(NAMES) >= 19
    assert [*numbers("late")] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_wait_gives_wrong_numbers_late_and_not_eagerly(name: str, numbers: Callable[[str], Any]) -> None:
    eager, late = numbers("eager")[name], numbers("late")[name]
    assert eager["with"] == eager["without"]
    assert late["with"] == eager["with"]
    assert late["without"] != eager["with"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_program_with_all_waits_gives_the_same_numbers_with_every_seed(
    name: str, seed: int, numbers: Callable[[str], Any]
) -> None:
    assert numbers(f"late:{seed}")[name]["with"] == numbers("eager")[name]["with"]


def test_a_seed_gives_the_same_numbers_in_every_run(output_with: Callable[..., str]) -> None:
    for schedule in ("late", "late:1"):
        first = output_with(schedule, "programs.py")
        assert output_with.__wrapped__(schedule, "programs.py") == first  # type: ignore[attr-defined]


def test_seeds_stand_for_different_orders(numbers: Callable[[str], Any]) -> None:
    wrong = {json.dumps([result["without"] for result in numbers(f"late:{seed}").values()]) for seed in (1, 2, 3)}
    assert len(wrong) > 1
