"""Bounds of whole programs beside plain CuPy: the time, and the memory that is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from chosen_runtime import ON_CUDA
from programs import PROGRAMS
from whole_programs import Comparison, compare, workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whole_programs import Pairs

pytestmark = pytest.mark.skipif(not ON_CUDA, reason="measures programs beside CuPy on CUDA")


@pytest.fixture(scope="module")
def started() -> Iterator[dict[str, Pairs]]:
    with workers(*PROGRAMS) as made:
        yield made


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_as_fast_and_holds_no_more(name: str, started: dict[str, Pairs]) -> None:
    if name not in started:
        pytest.skip("a library of the program is not installed")
    found: Comparison = compare(started[name])
    assert found.fast_enough, found
    assert found.small_enough, found
