"""``tcuda.sanitizer.check``: its modes, nesting, threads, decorators, and what remains afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import tcuda
from support.core import for_tests
from support.made_races import BYTES, access, race, tell
from tcuda.sanitizer import CUDASanitizerErrors, RaceWarning, Report, _detector, check
from tcuda.sanitizer._errors import finding_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import RunPython

pytestmark = pytest.mark.emulated


class TestRaise:
    def test_the_operation_raises_an_error_whose_message_is_the_race(self, capsys: pytest.CaptureFixture[str]) -> None:
        main, side = tcuda.Stream(), tcuda.Stream()
        with check() as report:
            tell(main, "fill", access())
            with pytest.raises(CUDASanitizerErrors) as caught:
                tell(side, "add", access())
        assert [finding_of(error) for error in caught.value.errors] == [report[0]]
        assert str(caught.value) == str(report[0])
        assert len(str(report[0]).splitlines()) == 5
        assert capsys.readouterr().err == ""
        assert report[0].missing.call == "side.wait_stream(main)"

    def test_all_races_of_an_operation_are_in_one_error(self) -> None:
        with check() as report, pytest.raises(CUDASanitizerErrors) as caught:
            race(arrays=3)
        assert len(caught.value.errors) == len(report) == 3

    def test_the_same_race_raises_an_error_again_and_is_kept_once(self) -> None:
        with check() as report:
            for _ in range(3):
                with pytest.raises(CUDASanitizerErrors):
                    race()
        assert len(report) == 1
        assert report.count(report[0]) == 3

    def test_an_ordered_program_is_left_alone(self) -> None:
        main, side = tcuda.Stream(), tcuda.Stream()
        with check() as report:
            tell(main, "fill", access())
            side.wait_stream(main)
            tell(side, "add", access())
        assert not report
        assert report.operations == 2

    def test_a_closed_stderr_does_not_hide_the_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stderr", None)
        with check(), pytest.raises(CUDASanitizerErrors):
            race()


def test_the_line_is_that_of_the_function_that_knows_both_streams() -> None:
    main, side = tcuda.Stream(), tcuda.Stream()
    with check(mode="collect") as report:
        tell(main, "fill", access())
        tell(side, "add", access())  # tell() knows its argument only
    frame = report[0].current.stack[1]
    assert frame.name == "test_the_line_is_that_of_the_function_that_knows_both_streams"
    assert report[0].missing[:2] == ("side.wait_stream(main)", frame)


class TestWarn:
    def test_the_warning_points_to_the_line_of_the_operation(self) -> None:
        main, side = tcuda.Stream(), tcuda.Stream()
        with check(mode="warn") as report:
            tell(main, "fill", access())
            with pytest.warns(RaceWarning) as caught:
                tell(side, "add", access())
        assert [str(warning.message) for warning in caught] == [str(report[0])]
        assert caught[0].filename == report[0].current.stack[0].filename
        assert caught[0].lineno == report[0].current.stack[0].line
        assert isinstance(caught[0].message, RaceWarning)
        assert caught[0].message.race is report[0]

    def test_the_same_race_warns_once(self) -> None:
        with check(mode="warn") as report, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                race()
        assert len(caught) == 1
        assert report.count(report[0]) == 3

    def test_a_program_that_makes_errors_of_warnings_gets_the_warning_as_an_error(self) -> None:
        with check(mode="warn") as report, pytest.raises(RaceWarning):
            race()  # the test suite makes errors of warnings
        assert len(report) == 1

    def test_the_other_races_of_an_operation_are_in_the_report(self) -> None:
        with check(mode="warn") as report, pytest.raises(RaceWarning):
            race(arrays=3)
        assert [found.current.argument for found in report] == ["x0", "x1", "x2"]


class TestCollect:
    def test_nothing_is_printed_and_nothing_is_raised(self, capsys: pytest.CaptureFixture[str]) -> None:
        with check(mode="collect") as report:
            race()
        assert len(report) == 1
        assert capsys.readouterr().err == ""

    def test_the_data_can_be_written_as_json(self) -> None:
        with check(mode="collect") as report:
            for _ in range(2):
                race()
        data = json.loads(json.dumps(report.as_dict()))
        assert list(data) == [
            "version",
            "races",
            "unwritten_reads",
            "possible",
            "operations",
            "suppressed",
            "syncs",
            "causes",
        ]
        assert (data["version"], data["operations"], data["suppressed"], data["syncs"]) == (1, 4, 0, [])
        assert data["races"][0]["count"] == 2
        assert data["races"][0]["overlap"][1] == BYTES
        assert data["races"][0]["element_range"] == [0, BYTES - 1]
        assert data["races"][0]["current"]["operation"] == "add"
        assert [step["name"] for step in data["races"][0]["neighbours"] if step["kind"] == "work"] == ["fill", "add"]
        assert data["races"][0]["neighbours"][-1]["line"] == data["races"][0]["current"]["stack"][0]["line"]

    def test_the_text_has_every_race_and_a_summary(self) -> None:
        with check(mode="collect") as report:
            for _ in range(2):
                race()
        assert str(report) == (f"{report[0]}\nThis race was found 2 times.\n\n1 race, seen 2 times, in 4 operations")
        assert repr(report) == "<tcuda.sanitizer.Report: 1 race, seen 2 times, in 4 operations>"

    def test_a_report_can_be_used_by_several_checks(self) -> None:
        report = Report()
        for _ in range(2):
            with check(mode="collect", report=report) as given:
                race()
            assert given is report
        assert report.count(report[0]) == 2
        assert report.operations == 4

    def test_a_report_is_a_sequence_of_races(self) -> None:
        with check(mode="collect") as report:
            race(name="add")
            race(name="multiply")
        assert [found.current.operation for found in report] == ["add", "multiply"]
        assert report[-1] is report.races[1]
        assert report[:1] == report.races[:1]
        assert bool(report)
        assert not Report()

    def test_a_race_of_another_report_has_no_count(self) -> None:
        with check(mode="collect") as report:
            race()
        with pytest.raises(ValueError, match="The finding is not in this report"):
            Report().count(report[0])


class TestNesting:
    def test_the_innermost_check_gets_the_race(self) -> None:
        with check(mode="collect") as outer:
            with check(mode="collect") as inner:
                race(name="inside")
            race(name="outside")
        assert [found.current.operation for found in inner] == ["inside"]
        assert [found.current.operation for found in outer] == ["outside"]

    def test_each_check_hears_of_a_race_that_another_check_has_heard_of(self) -> None:
        reports = []
        with check(mode="collect") as outer:
            for _ in range(2):
                with check(mode="collect") as report:
                    race()
                reports.append(report)
        assert [len(report) for report in reports] == [1, 1]
        assert not outer

    def test_an_inner_check_keeps_its_count_when_it_has_ended(self) -> None:
        def again() -> None:
            race()

        with check(mode="collect"):
            with check(mode="collect") as inner:
                again()
            again()
        assert inner.count(inner[0]) == 1

    def test_the_detector_runs_until_the_last_check_ends(self) -> None:
        with check(mode="collect"):
            with check(mode="collect"):
                pass
            assert _detector._is_attached
        assert not _detector._is_attached


class TestThreads:
    def test_a_thread_without_a_check_tells_the_check_that_was_entered_last(self) -> None:
        with check(mode="collect") as report:
            thread = threading.Thread(target=race)
            thread.start()
            thread.join()
        assert len(report) == 1

    def test_a_thread_tells_its_own_check(self) -> None:
        reports = {}
        entered, found = threading.Barrier(2), threading.Barrier(2)

        def run(name: str) -> None:
            with check(mode="collect") as report:
                entered.wait()
                race(name=name)
                found.wait()
            reports[name] = report

        threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, report in reports.items():
            assert [seen.current.operation for seen in report] == [name]

    def test_another_thread_can_end_the_check(self) -> None:
        started = check(mode="collect")
        started.__enter__()
        thread = threading.Thread(target=started.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        assert not _detector._is_attached
        with check(mode="collect") as report:
            race()
        assert len(report) == 1


class TestDecorator:
    def test_every_call_is_checked(self) -> None:
        @check()
        def step(missing: bool) -> int:
            if missing:
                race()
            return 3

        assert step(missing=False) == 3
        with pytest.raises(CUDASanitizerErrors):
            step(missing=True)
        assert step.__name__ == "step"

    def test_a_coroutine_function_is_checked_until_its_end(self) -> None:
        @check()
        async def step() -> None:
            await asyncio.sleep(0)
            race()

        with pytest.raises(CUDASanitizerErrors):
            asyncio.run(step())

    def test_tasks_tell_their_own_checks(self) -> None:
        async def run(name: str, turn: asyncio.Event, other: asyncio.Event) -> list[str]:
            with check(mode="collect") as report:
                other.set()
                await turn.wait()
                race(name=name)
                await asyncio.sleep(0)
            return [found.current.operation for found in report]

        async def both() -> list[list[str]]:
            one, two = asyncio.Event(), asyncio.Event()
            return await asyncio.gather(run("one", one, two), run("two", two, one))

        assert asyncio.run(both()) == [["one"], ["two"]]

    def test_collected_races_of_a_decorated_function_need_a_report(self) -> None:
        with pytest.raises(ValueError, match="as a decorator needs a report"):
            check(mode="collect")(race)
        report = Report()
        check(mode="collect", report=report)(race)()
        assert len(report) == 1

    def test_generator_functions_are_refused(self) -> None:
        def items() -> Iterator[int]:
            yield 1

        async def later() -> Any:
            yield 1

        for function in (items, later):
            with pytest.raises(TypeError, match="cannot decorate the generator function"):
                check()(function)

    def test_only_functions_are_decorated(self) -> None:
        with pytest.raises(TypeError, match="the decorated function must be callable; got an int"):
            check()(3)  # type: ignore[type-var]


class TestArguments:
    @pytest.mark.parametrize("mode", ["error", "", "RAISE"])
    def test_an_unknown_mode_is_refused(self, mode: str) -> None:
        with pytest.raises(ValueError, match=f"mode must be 'raise', 'warn' or 'collect'; got '{mode}'"):
            check(mode=mode)

    def test_a_mode_must_be_a_text(self) -> None:
        with pytest.raises(TypeError, match="mode must be a str; got an int"):
            check(mode=1)  # type: ignore[arg-type]

    def test_a_report_must_be_a_report(self) -> None:
        with pytest.raises(TypeError, match="report must be a tcuda.sanitizer.Report or None; got a list"):
            check(report=[])  # type: ignore[arg-type]

    def test_a_check_is_entered_once(self) -> None:
        one = check()
        with one:
            pass
        with pytest.raises(RuntimeError, match="was entered before"), one:
            pass


class TestDestructors:
    """Python drops the exception of a destructor, and that of a thread."""

    class Careless:
        def __del__(self) -> None:
            race()

    @pytest.fixture(autouse=True)
    def _silent_hook(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dropped: list[Any] = []
        monkeypatch.setattr(sys, "unraisablehook", lambda lost: self.dropped.append(type(lost.exc_value)))

    def test_the_check_raises_the_dropped_error_at_its_end(self) -> None:
        with pytest.raises(CUDASanitizerErrors, match="^write after write"), check():
            self.Careless()
        assert self.dropped == [CUDASanitizerErrors]

    def test_the_check_repeats_the_dropped_warning_at_its_end(self) -> None:
        with pytest.raises(RaceWarning), check(mode="warn"):
            self.Careless()
        assert self.dropped == [RaceWarning]

    def test_an_error_of_the_program_comes_first(self) -> None:
        def fail(careless: TestDestructors.Careless) -> None:
            raise KeyError

        with pytest.raises(KeyError), check():
            fail(self.Careless())

    def test_a_caught_error_is_not_raised_again(self) -> None:
        with check(), contextlib.suppress(CUDASanitizerErrors):
            race()

    def test_a_hook_that_the_program_sets_meanwhile_stays(self) -> None:
        def programs(lost: Any) -> None: ...

        with check():
            sys.unraisablehook = programs
        assert sys.unraisablehook is programs

    DROPPING: ClassVar = {
        "a destructor": "type('Careless', (), {'__del__': lambda self: race()})()",
        "a thread": "thread = threading.Thread(target=race); thread.start(); thread.join()",
    }
    PROGRAM = """
import threading
import tcuda
from tcuda import xp
def race():
    x, side = xp.zeros(10), tcuda.Stream()
    with tcuda.stream(side):
        x += 1
try:
    with tcuda.sanitizer.check({mode!r}):
        {dropping}
        print("goes on", flush=True)
except (tcuda.sanitizer.CUDASanitizerErrors, tcuda.sanitizer.RaceWarning) as error:
    print(type(error).__name__)
print(all(getattr(module, name) is getattr(module, f"__{{name}}__")
    for module, name in [(__import__("sys"), "unraisablehook"), (threading, "excepthook")]))
"""

    @pytest.mark.parametrize("mode", ["raise", "warn"])
    @pytest.mark.parametrize("what", DROPPING)
    def test_a_program_gets_the_dropped_error(self, what: str, mode: str, run_python: RunPython) -> None:
        program = self.PROGRAM.format(mode=mode, dropping=self.DROPPING[what])
        done = run_python(program, TCUDA_RUNTIME="emulated")  # makes errors of warnings
        error = "CUDASanitizerErrors" if mode == "raise" else "RaceWarning"
        assert done.stdout.split("\n") == ["goes on", error, "True", ""], done.stderr
        assert done.stderr.count(f"{error}: ") == 1  # Python's own report of the dropped error


def test_an_exception_ends_the_check() -> None:
    with pytest.raises(KeyError), check():
        raise KeyError
    assert not _detector._is_attached


def test_a_check_without_a_detector_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise RuntimeError("no races here")

    monkeypatch.setattr(_detector, "_attach", refuse)
    with pytest.raises(RuntimeError, match="no races here"), check():
        pass
    assert _detector._started is None


def test_races_that_wait_for_the_main_thread_are_told_at_the_end_of_a_check_of_another_thread() -> None:
    tcuda.init()
    one, other = tcuda.Stream(), tcuda.Stream()
    reports = []

    def work() -> None:
        with tcuda.sanitizer.check("collect") as report:
            detector = _detector._started.detector  # type: ignore[union-attr]
            use = (0x7000_0000_0000, 1, (64,), (1,), 2, "x")
            detector.work(one.device_index, one.cuda_stream, "first", [use])
            for_tests.work_in_callback(detector, other.device_index, other.cuda_stream, "second", [use], True)
        reports.append(report)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [race.current.operation for race in reports[0]] == ["second"]


@pytest.mark.emulated
@pytest.mark.parametrize("make", ["zeros", "ones", "full"])
def test_a_function_that_makes_an_array_names_its_operand_as_fill_does(make: str) -> None:
    side = tcuda.Stream()
    with tcuda.sanitizer.check(mode="collect") as report:
        x = getattr(tcuda.xp, make)(1000, *([2.0] if make == "full" else []))
        with tcuda.stream(side):
            x + 1
    (race,) = report
    assert race.as_dict()["words"]["sides"][0]["does"] == "writes its argument a"
