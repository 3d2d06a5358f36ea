"""Races through ``logging``: the logger ``tcuda.sanitizer``."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest

from support.made_races import race
from tcuda.sanitizer import CUDASanitizerErrors, check, suppress

if TYPE_CHECKING:
    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated

NAME = "tcuda.sanitizer"


@pytest.mark.parametrize("mode", ["raise", "warn", "collect"])
@pytest.mark.filterwarnings("ignore::tcuda.sanitizer.RaceWarning")
def test_a_race_is_logged_once_in_every_mode(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    try:
        with check(mode) as report:
            for _ in range(3):
                race()
    except CUDASanitizerErrors:
        assert mode == "raise"
    (found,) = report
    assert [(record.name, record.levelno) for record in caplog.records] == [(NAME, logging.WARNING)]
    (record,) = caplog.records
    assert record.__dict__["race"] is found
    assert record.getMessage() == str(found)


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
def test_without_a_handler_a_race_is_printed_once(imports: str, output_of: OutputOf) -> None:
    code = f"""
{imports}
import contextlib, io, sys
from tcuda.sanitizer import check
import tcuda
main, side = tcuda.current_stream(), tcuda.Stream()
sys.stderr = io.StringIO()
with contextlib.suppress(Exception), check():
    x = tcuda.xp.ones(1000)
    with tcuda.stream(side):
        y = x * 2
print(sys.stderr.getvalue().count("CSAN detected"))
"""
    assert output_of(code) == "1"


def test_a_check_does_not_import_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "logging")
    with check("collect") as report:
        race()
    assert len(report) == 1
    assert "logging" not in sys.modules
