"""The options ``--tcuda-sanitize`` and ``--tcuda-html`` of the plugin, in pytest processes on emulated devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.wings

EMULATED = ("--tcuda-runtime", "emulated")

RACE = """
def race():
    side = tcuda.Stream()
    x = tcuda.xp.ones(1000)
    with tcuda.stream(side):
        return x * 2  # side does not wait for the default stream
"""
TESTS = f"""{RACE}
def test_race(): race()
def test_right(): assert tcuda.xp.ones(3).sum() == 3
"""


@pytest.mark.parametrize("option", [["--tcuda-sanitize=raise"], ["--tcuda-sanitize"]])
def test_a_test_that_makes_a_race_fails(option: list[str], run: Callable[..., pytest.RunResult]) -> None:
    result = run(TESTS, *EMULATED, *option)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["=* tcuda sanitizer *=", "1 race, seen 1 time, in * operations."])


def test_without_the_option_nobody_looks_for_races(run: Callable[..., pytest.RunResult]) -> None:
    result = run(TESTS, *EMULATED)
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*tcuda sanitizer*")


def test_the_option_may_be_a_line_of_the_configuration(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\naddopts = --tcuda-sanitize --tcuda-runtime=emulated\n")
    run(TESTS).assert_outcomes(passed=1, failed=1)


def test_warn_warns_and_lets_the_test_pass(run: Callable[..., pytest.RunResult]) -> None:
    result = run(TESTS, *EMULATED, "--tcuda-sanitize=warn", "-W", "default")
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*RaceWarning*", "1 race, *"])


def test_races_of_fixtures_and_of_what_they_undo_count_too(run: Callable[..., pytest.RunResult]) -> None:
    code = f"""{RACE}
@pytest.fixture(scope="module")
def of_module(): race()
@pytest.fixture
def before(): race()
@pytest.fixture
def after():
    yield
    race()
@pytest.fixture
def half():  # the test makes the other half of the race
    return tcuda.xp.ones(1000)
def test_module(of_module): pass
def test_before(before): pass
def test_after(after): pass
def test_half(half):
    with tcuda.stream(tcuda.Stream()):
        half * 2
def test_destructor():
    class Racing:
        def __del__(self): race()
    Racing()
"""
    run(code, *EMULATED, "--tcuda-sanitize", "-W", "default").assert_outcomes(passed=1, errors=3, failed=2)


def test_races_between_tests_are_no_races_of_a_test(run: Callable[..., pytest.RunResult]) -> None:
    code = (
        "kept = []\n"
        "def test_a(): kept.append(tcuda.xp.ones(1000))\n"
        "def test_b():\n"
        "    with tcuda.stream(tcuda.Stream()):\n"
        "        kept[0] * 2\n"
    )
    run(code, *EMULATED, "--tcuda-sanitize").assert_outcomes(passed=2)


def test_a_marked_test_may_race(run: Callable[..., pytest.RunResult]) -> None:
    code = f"{RACE}\n@pytest.mark.tcuda_may_race\ndef test_a(): race()\ndef test_b(): race()\n"
    run(code, *EMULATED, "--tcuda-sanitize").assert_outcomes(passed=1, failed=1)


def test_suppressions_hold_and_a_wrong_file_is_an_error_of_usage(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = pytester.path / "suppressions.txt"
    monkeypatch.setenv("TCUDA_SANITIZER_SUPPRESSIONS", str(file))
    assert run(TESTS, *EMULATED, "--tcuda-sanitize").ret == pytest.ExitCode.USAGE_ERROR
    file.write_text("function=race\n")
    result = run(TESTS, *EMULATED, "--tcuda-sanitize")
    result.assert_outcomes(passed=2)


def test_tests_that_use_no_device_are_told(run: Callable[..., pytest.RunResult]) -> None:
    result = run("def test_a(): pass\n", *EMULATED, "--tcuda-sanitize")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["No operation was watched.*"])


# The page


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "xdist"])
def test_the_page_has_the_races_of_all_tests(
    processes: list[str], run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    page = pytester.path / "races.html"
    for _ in range(2):  # the second page takes the place of the first one
        result = run(
            f"{TESTS}def test_other(): race()\n", *EMULATED, "--tcuda-sanitize", "--tcuda-html=races.html", *processes
        )
        result.assert_outcomes(passed=1, failed=2)
        result.stdout.fnmatch_lines(["1 race, seen 2 times, *", f"wrote {page}"])
        assert page.read_text().startswith("<!DOCTYPE html>")


def test_the_page_is_written_without_a_race(run: Callable[..., pytest.RunResult], pytester: pytest.Pytester) -> None:
    run("def test_a(): tcuda.xp.ones(3)\n", *EMULATED, "--tcuda-sanitize", "--tcuda-html=races.html")
    assert (pytester.path / "races.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tcuda-html=races.html"], "--tcuda-html needs --tcuda-sanitize"),
        (["--tcuda-sanitize", "--tcuda-html=data.txt"], "'*data.txt' is no page of tcuda"),
        (["--tcuda-sanitize", "--tcuda-html=absent/races.html"], "No such file or directory"),
        (["--tcuda-sanitize=collect"], "'collect' is neither 'raise' nor 'warn'"),
        (["--tcuda-sanitize", "test_it.py"], "write --tcuda-sanitize=raise test_it.py"),
    ],
)
def test_options_that_cannot_be_are_errors_of_usage(
    options: list[str], message: str, run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    (pytester.path / "data.txt").write_text("numbers")
    result = run(TESTS, *EMULATED, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}*"])
    assert (pytester.path / "data.txt").read_text() == "numbers"
