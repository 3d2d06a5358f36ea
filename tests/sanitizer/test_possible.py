"""Possible races: who hears of them, and what the reports say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import tcuda
from support.folders import TESTS
from support.made_races import READ, access, race, tell
from tcuda.sanitizer import CUDASanitizerErrors, RaceWarning, Report, check
from tcuda.sanitizer._variables import _possible

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import RunPython

emulated = pytest.mark.emulated
DOUBT = "`add` gets a pointer into this memory and may write there, and it is not known which bytes `add` writes."


@emulated
class TestOneRace:
    @pytest.mark.parametrize("mode", ["raise", "warn", "collect"])
    def test_the_report_alone_gets_the_race(self, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
        with check(mode) as report:
            race(possible=[0])
        assert capsys.readouterr().err == ""
        assert (len(report), len(report.possible)) == (0, 1)
        assert not report
        assert report.possible[0].confidence == "possible"
        assert report.possible[0].doubt == DOUBT

    def test_on_demand_the_operation_raises_an_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        with (
            check(possible=True) as report,
            pytest.raises(CUDASanitizerErrors, match="^possible write") as caught,
        ):
            race(possible=[0])
        assert str(caught.value) == str(report.possible[0])
        assert capsys.readouterr().err == ""
        assert not report.races

    def test_on_demand_the_check_warns(self) -> None:
        with check("warn", possible=True) as report, pytest.warns(RaceWarning) as caught:
            race(possible=[0])
        assert str(caught[0].message) == str(report.possible[0])

    def test_a_decorated_function_keeps_the_choice(self) -> None:
        with pytest.raises(CUDASanitizerErrors):
            check(possible=True)(race)(possible=[0])
        check()(race)(possible=[0])

    def test_the_choice_must_be_a_bool(self) -> None:
        with pytest.raises(TypeError, match="possible must be True or False; got a str"):
            check(possible="yes")  # type: ignore[arg-type]


@emulated
class TestBesideExactRaces:
    def test_an_error_has_the_exact_races_of_the_operation_only(self) -> None:
        with check() as report, pytest.raises(CUDASanitizerErrors) as caught:
            race(arrays=3, possible=[1])
        assert [error.race.current.argument for error in caught.value.errors] == ["x0", "x2"]
        assert [found.current.argument for found in report] == ["x0", "x2"]
        assert [found.current.argument for found in report.possible] == ["x1"]

    def test_a_first_possible_race_does_not_hide_the_exact_races_of_the_operation(self) -> None:
        with check() as report, pytest.raises(CUDASanitizerErrors, match="^write after write\n"):
            race(arrays=2, possible=[0])
        assert (len(report), len(report.possible)) == (1, 1)

    def test_an_operation_that_is_exact_later_is_a_race_of_its_own(self) -> None:
        with check("collect") as report:
            for possible in ([0], []):
                race(possible=possible)
        assert [report.count(found) for found in (*report, *report.possible)] == [1, 1]

    def test_a_possible_write_after_an_exact_write_leaves_the_race_with_the_exact_write_exact(self) -> None:
        main, side = tcuda.Stream(), tcuda.Stream()
        with check("collect") as report:
            tell(main, "fill", access())
            tell(main, "unknown", access(kind=3, confidence="possible"))
            tell(side, "read", access(kind=READ))
        assert [found.previous.operation for found in report] == ["fill"]
        assert [found.previous.operation for found in report.possible] == ["unknown"]

    def test_an_exact_write_after_a_possible_write_is_the_only_race(self) -> None:
        main, side = tcuda.Stream(), tcuda.Stream()
        with check("collect") as report:
            tell(main, "unknown", access(kind=3, confidence="possible"))
            tell(main, "fill", access())
            tell(side, "read", access(kind=READ))
        assert [found.previous.operation for found in report] == ["fill"]
        assert report.possible == ()


@emulated
class TestTexts:
    def test_the_doubt_of_an_unknown_kernel(self) -> None:
        main, side = tcuda.Stream(), tcuda.Stream()
        with check("collect") as report:
            tell(main, "unknown", access(kind=3, confidence="possible"))
            tell(side, "read", access(kind=READ))
        doubt = "`unknown` gets a pointer into this memory, and it is not known what `unknown` does there."
        assert report.possible[0].doubt == doubt
        assert f"Confidence: possible. {doubt}\n" in report.possible[0].details
        assert f"\n   possible: {doubt}\n" in str(report.possible[0])

    def test_the_doubt_of_views_that_are_hard_to_compare(self) -> None:
        main, side = tcuda.Stream(), tcuda.Stream()
        with check("collect") as report:
            tell(main, "first", (1 << 60, 1, (997, 991, 499), (1_000_003, 997, 2), 2, "x"))
            tell(side, "second", ((1 << 60) + 1, 1, (991, 983, 499), (1_000_033, 991, 2), 2, "x"))
        assert report.possible[0].doubt == "It is not known whether both views have an element in common."

    def test_an_exact_race_has_no_doubt(self) -> None:
        with check("collect") as report:
            race()
        assert (report[0].confidence, report[0].doubt) == ("exact", None)
        assert "Confidence: exact.\n" in report[0].details
        assert "possible" not in str(report[0])

    def test_a_report_lists_possible_races_after_the_exact_ones(self) -> None:
        with check("collect") as report:
            for _ in range(2):
                race(name="first", possible=[0])
            race(name="second")
        exact, possible = report[0], report.possible[0]
        assert report.count(possible) == 2
        assert report.summary == "1 race, seen 1 time, in 6 operations; 1 possible race"
        assert str(report) == f"{exact}\n\n{possible}\nThis race was found 2 times.\n\n{report.summary}"

    def test_the_data_has_both_lists(self) -> None:
        with check("collect") as report:
            race(possible=[0])
        data = json.loads(json.dumps(report.as_dict()))
        assert data["races"] == []
        assert [(found["confidence"], found["doubt"], found["count"]) for found in data["possible"]] == [
            ("possible", DOUBT, 1)
        ]

    def test_an_empty_report_has_no_possible_races(self) -> None:
        assert Report().possible == ()


class TestWholeProcess:
    @pytest.fixture
    def program(self, tmp_path: Path) -> str:
        (tmp_path / "program.py").write_text("from support.made_races import race\nrace(possible=[0])\n")
        return "import tcuda\ntcuda.init()\nimport program\nprint('end')"

    @pytest.mark.parametrize(("value", "chosen"), [(None, False), ("", False), ("0", False), ("1", True)])
    def test_the_variable_chooses(self, value: str | None, chosen: bool) -> None:
        assert _possible({} if value is None else {"TCUDA_SANITIZER_POSSIBLE": value}) is chosen

    def test_an_unknown_value_is_refused_at_the_first_use(self, run_python: RunPython) -> None:
        done = run_python("import tcuda; tcuda.init()", TCUDA_SANITIZER="1", TCUDA_SANITIZER_POSSIBLE="yes")
        assert done.returncode == 1
        assert done.stderr.endswith("ValueError: TCUDA_SANITIZER_POSSIBLE is 'yes'; it can be '0' or '1'.\n")

    @emulated
    @pytest.mark.parametrize("mode", ["raise", "warn"])
    def test_possible_races_are_printed_at_the_end(self, mode: str, program: str, run_python: RunPython) -> None:
        done = run_python(program, TCUDA_SANITIZER=mode, PYTHONPATH=str(TESTS))
        assert (done.returncode, done.stdout) == (0, "end\n")
        assert done.stderr.startswith("possible write after write\n")
        assert done.stderr.endswith(
            "\n\n1 possible race; TCUDA_SANITIZER_POSSIBLE=1 treats possible races as exact ones.\n"
        )

    @emulated
    def test_on_demand_the_operation_raises_an_error(self, program: str, run_python: RunPython) -> None:
        done = run_python(program, TCUDA_SANITIZER="1", TCUDA_SANITIZER_POSSIBLE="1", PYTHONPATH=str(TESTS))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("possible write after write\n") == 1
        assert "CUDASanitizerErrors: possible write after write\n" in done.stderr
