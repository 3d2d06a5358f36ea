"""Races through ``logging``: the logger ``tcuda.sanitizer``."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest

from support.made_races import race
from tcuda.sanitizer import CUDASanitizerErrors, RaceWarning, check, suppress

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated

NAME = "tcuda.sanitizer"


def test_a_race_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with check("collect") as report:
        for _ in range(3):
            race()
    (found,) = report
    assert [(record.name, record.levelno) for record in caplog.records] == [(NAME, logging.WARNING)]
    (record,) = caplog.records
    assert record.__dict__["race"] is found
    assert record.getMessage() == str(found)


@pytest.mark.parametrize("mode", ["raise", "warn"])
def test_a_race_that_an_error_or_a_warning_tells_is_not_logged(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, NAME)
    with pytest.raises((CUDASanitizerErrors, RaceWarning)), check(mode):
        race()
    assert caplog.records == []
    with check(mode) as report:
        race(possible=[0])  # no error and no warning tells of the possible race
    assert [record.__dict__["race"] for record in caplog.records] == [*report.possible]


def test_a_possible_race_is_information(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, NAME)
    with check("collect"):
        race(possible=[0])
    assert [record.levelno for record in caplog.records] == [logging.INFO]


def test_a_suppressed_race_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with check("collect"), suppress(file="*"):
        race()
    assert caplog.records == []


@pytest.mark.parametrize("imports", ["", "import logging"])
def test_without_a_handler_nothing_is_printed(imports: str, output_of: OutputOf) -> None:
    code = f"""
{imports}
import io, sys
from tcuda.sanitizer import check
import tcuda
main, side = tcuda.current_stream(), tcuda.Stream()
sys.stderr = io.StringIO()
with check("collect"):
    x = tcuda.xp.ones(1000)
    with tcuda.stream(side):
        y = x * 2
print(repr(sys.stderr.getvalue()))
"""
    assert output_of(code) == "''"


def test_a_check_does_not_import_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "logging")
    with check("collect") as report:
        race()
    assert len(report) == 1
    assert "logging" not in sys.modules
