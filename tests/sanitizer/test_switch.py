"""``tcuda.sanitizer.enable()`` and ``disable()``: the race detector for all code of the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcuda._sanitizer
from tcuda.sanitizer import CUDASanitizerErrors, RaceWarning, check, disable, enable

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.emulated


def race() -> None:
    side, x = tcuda.Stream(), tcuda.xp.ones(1000)
    with tcuda.stream(side):
        x * 2  # side does not wait for the current stream


@pytest.fixture(autouse=True)
def _off() -> Iterator[None]:
    yield
    disable()


def test_the_modes_are_those_of_a_check() -> None:
    report = enable()
    with pytest.raises(CUDASanitizerErrors):
        race()
    assert len(report) == 1
    report = enable("warn")
    with pytest.warns(RaceWarning):
        race()
    assert len(report) == 1
    report = enable("collect")
    race()
    assert len(report) == 1
    disable()
    race()
    assert len(report) == 1


def test_a_second_call_with_the_same_arguments_does_nothing() -> None:
    report = enable("collect")
    race()
    assert enable("collect") is report
    assert len(report) == 1
    assert enable("collect", possible=True) is not report
    disable()
    disable()
    assert enable("collect", possible=True) is not report


def test_the_switch_is_that_of_torchs_names() -> None:
    enable("collect")
    assert tcuda._sanitizer.cuda_sanitizer.enabled
    tcuda._sanitizer.enable_cuda_sanitizer()  # is on already
    race()
    tcuda._sanitizer.cuda_sanitizer.disable()
    race()


def test_wrong_arguments_change_nothing() -> None:
    report = enable("collect")
    with pytest.raises(ValueError, match="mode must be 'raise', 'warn' or 'collect'; got 'loud'"):
        enable("loud")
    with pytest.raises(TypeError, match="possible"):
        enable(possible="yes")  # type: ignore[arg-type]
    race()
    assert len(report) == 1


def test_a_check_of_a_part_goes_first() -> None:
    outer = enable("raise")
    with check("collect") as inner:
        race()
    assert (len(outer), len(inner)) == (0, 1)
