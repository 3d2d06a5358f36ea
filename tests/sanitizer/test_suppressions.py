"""Suppressions by file, line, function and array, in code and in a file."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tcuda
from support.made_races import access, race, tell
from tcuda.sanitizer import CUDASanitizerErrors, Report, _suppressions, check, suppress, suppressed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf

pytestmark = pytest.mark.emulated

FILE = Path(__file__).name


def warm_up() -> None:
    race(name="add")


def run() -> Report:
    with check(mode="collect") as report:
        warm_up()
    return report


@pytest.mark.parametrize(
    "conditions",
    [
        {"function": "warm_up"},
        {"function": "warm_*"},
        {"function": warm_up},
        {"file": FILE},
        {"file": f"sanitizer/{FILE}"},
        {"file": __file__},
        {"file": Path(__file__)},
        {"file": "*/sanitizer/test_supp*.py"},
        {"file": FILE, "line": inspect.getsourcelines(warm_up)[1] + 1},
        {"file": FILE, "function": "warm_up"},
    ],
)
def test_a_race_at_the_place_is_counted_and_not_told(conditions: dict[str, Any]) -> None:
    with suppress(**conditions):
        report = run()
    assert not report
    assert report.suppressed == 1
    assert report.summary == "No race in 2 operations; 1 suppressed"
    assert report.as_dict()["suppressed"] == 1
    assert len(run()) == 1


@pytest.mark.parametrize(
    "conditions",
    [
        {"function": "warm"},
        {"file": "suppressions.py"},
        {"file": FILE, "line": inspect.getsourcelines(warm_up)[1]},
        {"file": "other.py", "function": "warm_up"},
    ],
)
def test_a_race_at_another_place_is_told(conditions: dict[str, Any]) -> None:
    with suppress(**conditions):
        assert len(run()) == 1


def test_a_suppression_holds_until_it_is_removed() -> None:
    permanent = suppress(function="warm_up")
    assert not run()
    assert repr(permanent) == "<tcuda.sanitizer.suppress function=warm_up>"
    permanent.remove()
    permanent.remove()
    assert len(run()) == 1
    assert repr(permanent) == "<tcuda.sanitizer.suppress function=warm_up (removed)>"


def test_a_race_that_was_suppressed_is_told_later() -> None:
    with check(mode="collect") as report:
        for _ in range(2):
            with suppress(function="warm_up"):
                warm_up()
        assert not report
        assert report.suppressed == 2
        for _ in range(2):
            warm_up()
    assert report.count(report[0]) == 2


def test_other_races_of_an_operation_are_raised() -> None:
    main, side = tcuda.Stream(), tcuda.Stream()

    def fill_on_purpose(place: int) -> None:
        tell(main, "fill", access(place, label=f"x{place}"))

    def fill(place: int) -> None:
        tell(main, "fill", access(place, label=f"x{place}"))

    with check() as report, suppress(function="fill_on_purpose"):
        for place in range(6):
            (fill if place in (2, 4) else fill_on_purpose)(place)
        with pytest.raises(CUDASanitizerErrors) as caught:
            tell(side, "add", *[access(place, label=f"x{place}") for place in range(6)])
    assert len(caught.value.errors) == 2
    assert ([found.current.argument for found in report], report.suppressed) == (["x2", "x4"], 4)


def test_the_decorator_suppresses_the_races_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_suppressions, "_of_functions", {})

    def on_purpose() -> None:
        race(name="add")

    def by_mistake() -> None:
        race(name="add")

    assert suppressed(on_purpose) is on_purpose
    with check(mode="collect") as report:
        on_purpose()
        by_mistake()
    assert (len(report), report.suppressed) == (1, 1)


def test_a_race_in_an_array_is_suppressed(xp: Any) -> None:
    scratch, other = xp.zeros(16, dtype="uint8"), xp.zeros(16, dtype="uint8")
    main, side = tcuda.Stream(), tcuda.Stream()

    def touch(array: Any, name: str) -> None:
        for stream in (main, side):
            tell(stream, name, (array.data.ptr, 1, (16,), (1,), 2, ""))

    with suppress(array=scratch[4:]), check(mode="collect") as report:
        main.synchronize()
        touch(scratch, "scratch")
        touch(other, "other")
        tell(main, "head", (scratch.data.ptr, 1, (4,), (1,), 2, ""))
    assert [found.current.operation for found in report] == ["other", "head"]
    assert report.suppressed == 1


def test_a_reversed_view_names_its_memory(xp: Any) -> None:
    with suppress(array=xp.zeros(8, dtype="uint8")[::-1]) as one, suppress(array=xp.zeros(8, dtype="uint8")) as two:
        sizes = [end - begin for begin, end in (one._condition.memory, two._condition.memory)]  # type: ignore[misc]
    assert sizes == [8, 8]


@pytest.mark.parametrize(
    ("conditions", "error", "message"),
    [
        ({}, ValueError, "suppress() needs a file, a function or an array; got none of them."),
        ({"line": 3}, ValueError, "suppress() needs the file of line 3; give file=... too."),
        ({"file": "a.py", "line": 0}, ValueError, "line must be from 1 to 2**31; got 0."),
        ({"file": "a.py", "line": "3"}, TypeError, "line must be an integer; got a str."),
        ({"file": 3}, TypeError, "file must be a str or a path; got an int."),
        ({"file": ""}, ValueError, "file must not be empty."),
        ({"function": 3}, TypeError, "function must be a str or a function; got an int."),
        ({"function": len}, TypeError, "function must be a Python function; got a builtin_function_or_method."),
        ({"array": [1]}, TypeError, "array must be an array of tcuda.xp; got a list."),
    ],
)
def test_a_wrong_condition_is_refused_and_suppresses_nothing(
    conditions: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        suppress(**conditions)
    assert str(caught.value) == message
    assert _suppressions._in_force == ()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file that the environment variable names."""
    path = tmp_path / "races.txt"
    monkeypatch.setenv("TCUDA_SANITIZER_SUPPRESSIONS", str(path))
    monkeypatch.setattr(_suppressions, "_of_file", {})
    return path


def test_the_file_of_the_environment_suppresses(file: Path) -> None:
    file.write_text(f"# on purpose\n\nfile='{FILE}' function=warm_*  # a comment\n")
    report = run()
    assert (len(report), report.suppressed) == (0, 1)


def test_a_line_of_the_file_must_fit(file: Path) -> None:
    file.write_text(f"file={FILE} line=1\n")
    assert len(run()) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train.py", "2: 'train.py' is not a condition. A condition is file=..., line=... or function=...."),
        ("kernel=add", "2: 'kernel=add' is not a condition. A condition is file=..., line=... or function=...."),
        ("file=", "2: 'file=' is not a condition. A condition is file=..., line=... or function=...."),
        ("line=3", "2: line= needs file=."),
        ("file=a.py line=x", "2: line= must be an integer from 1 on; got 'x'."),
        ("file=a.py file=b.py", "2: file= is given twice."),
        ("file='a.py", "2: No closing quotation."),
    ],
)
def test_a_wrong_line_is_named(file: Path, line: str, message: str) -> None:
    file.write_text(f"function=f\n{line}\n")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        run()
    assert str(caught.value) == f"{file}:{message}"
    assert _suppressions._of_file == {}


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match="TCUDA_SANITIZER_SUPPRESSIONS names a file that cannot be read"
    ) as caught:
        run()
    assert caught.value.filename == str(file)


def test_a_device_that_never_ends_is_refused(fresh_output_of: OutputOf) -> None:
    code = """
try:
    import tcuda
    tcuda.sanitizer.check(mode="collect").begin()
except ValueError as error:
    print(error)
"""
    for switch in ("0", "1"):
        assert fresh_output_of(code, TCUDA_SANITIZER_SUPPRESSIONS="/dev/zero", TCUDA_SANITIZER=switch) == (
            "TCUDA_SANITIZER_SUPPRESSIONS names a file of which no suppressions are read, '/dev/zero': it is not a "
            "regular file."
        )


def test_other_arrays_of_the_same_place_are_told() -> None:
    with suppress(function="nobody"), check(mode="collect") as report:
        main, side = tcuda.Stream(), tcuda.Stream()
        tell(main, "fill", access())
        tell(side, "add", access())
    assert len(report) == 1
