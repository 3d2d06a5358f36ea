"""The script that runs CuPy's own tests under the race detector, with a stand-in for CuPy's tests."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY, TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Script = Callable[..., tuple[int, list[str], dict[str, Any]]]

SCRIPT = REPOSITORY / ".ci" / "cupy_races" / "run.py"

CUPYS = """
import os
import unittest

import pytest
import tcuda
from support.made_races import race
from tcuda.sanitizer import _detector
from tcuda import xp


def test_clean():
    assert float((xp.ones(4) + 1).sum()) == 8


class TestCase(unittest.TestCase):
    def test_racy(self):
        x = xp.zeros(4)
        with tcuda.stream(tcuda.Stream()):
            x += 1


@pytest.mark.parametrize("name", ["a::b", "c [d]"])
def test_possible(name):
    race(possible=[0])


def test_fails():
    assert False


def test_fails_under_the_detector_only():
    assert _detector._started is None
"""

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(not SCRIPT.exists(), reason="the folder .ci is in checkouts only"),
]


MODULE = "cupy_tests/some_tests/test_some.py"


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Return a function that runs the script for some tests: the exit status, the printed lines and the JSON."""

    def run(tests: str, *arguments: str) -> tuple[int, list[str], dict[str, Any]]:
        folder = tmp_path / "tests" / "cupy_tests" / "some_tests"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test_some.py").write_text(tests)
        result = tmp_path / "races.json"
        done = subprocess.run(
            [sys.executable, SCRIPT, tmp_path, "--workers", "2", "--parts", "some_tests", "--json", result, *arguments],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout.splitlines(), json.loads(result.read_text())

    return run


def summary(lines: list[str]) -> list[str]:
    """Return the lines of the summary."""
    begin = next(place for place, line in enumerate(lines) if line.startswith("The race detector checked"))
    return lines[begin:]


@pytest.mark.long
def test_the_script_lists_the_races_by_test(script: Script) -> None:
    status, lines, result = script(CUPYS)
    assert status == 1
    first, *others = summary(lines)
    assert first.startswith("The race detector checked 6 of 6 tests with ")
    assert others == [
        "1 race in 1 test",
        f"  1 x write after write: memset, then add; first in {MODULE}::TestCase::test_racy",
        "2 possible races in 2 tests",
        f"  2 x write after write: fill, then add; first in {MODULE}::test_possible[a::b]",
        "Failing without the detector too: 1 test.",
        "Failing under the detector only: 1 test.",
        f"  {MODULE}::test_fails_under_the_detector_only",
    ]
    assert len(result["ran"]) == 6
    found = {each["test"]: each for each in result["found"]}
    assert len(found) == 3
    assert found[f"{MODULE}::TestCase::test_racy"]["races"][0]["missing"].endswith(
        ".wait_stream(tcuda.default_stream())"
    )


@pytest.mark.long
def test_no_test_begins_after_the_time(script: Script, tmp_path: Path) -> None:
    status, lines, result = script(CUPYS, "--seconds", "0", "--logs", str(tmp_path / "logs"))
    assert status == 0
    assert summary(lines) == [
        "The race detector checked 0 of 6 tests with 0 operations.",
        "0 races in 0 tests",
        "0 possible races in 0 tests",
        "Failing without the detector too: 0 tests.",
        "Failing under the detector only: 0 tests.",
    ]
    assert (result["collected"], result["ran"]) == (6, {})
    assert len(list((tmp_path / "logs").glob("checked-*.log"))) == 2


@pytest.mark.long
def test_the_results_of_a_process_that_crashes_are_kept(script: Script) -> None:
    tests = """
import os
import pytest

@pytest.mark.parametrize("number", range(5))
def test_some(number):
    if number == 3:
        os._exit(7)
"""
    status, lines, result = script(tests)
    assert status == 1
    assert f"A process ended with the status 7 in {MODULE}::test_some[3]:" in lines
    assert result["unfinished"] == [f"{MODULE}::test_some[3]"]
    # The process may have taken one more test, which then does not run.
    assert len(result["ran"]) in (3, 4)
    assert result["collected"] == 5


class TestInThisProcess:
    @pytest.fixture(autouse=True)
    def _importable(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.syspath_prepend(str(SCRIPT.parent))
        yield
        for name in ("run", "race_log", "shared_queue"):
            sys.modules.pop(name, None)

    def test_a_process_that_does_not_end_is_killed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        import run
        from race_log import Results

        program = """
import sys
with open(sys.argv[1], "w") as log:
    log.write('{"begun": "first"}\\n{"test": "first", "seconds": 2, "failed": true, "checked": false, ')
    log.write('"operations": 0, "suppressed": 0, "races": [], "possible": []}\\n')
    log.write('{"begun": "second"}\\n{"test": "sec')
print("ready", flush=True)
sys.stdin.read()
"""

        def start(tests: Path, arguments: list[str], log: Path, output: Any) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", program, str(log)]
            started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert started.stdout is not None
            assert started.stdout.readline() == "ready\n"
            return started

        monkeypatch.setattr(run, "start", start)
        begin = time.monotonic()
        (worker,) = run.run(tmp_path, tmp_path, "checked", [], 1, begin, 0.0)
        worker.process.stdin.close()
        worker.process.stdout.close()
        assert worker.killed
        assert not worker.crashed
        results = Results.of([worker.log])
        run.report([worker], results, begin)
        assert "A process was killed after the grace in second." in capsys.readouterr().out
        assert (results.ran, results.failed) == ({"first": 2}, ["first"])

    def test_each_place_is_taken_once(self, tmp_path: Path) -> None:
        from shared_queue import SharedQueue

        def take(_: int) -> list[int | None]:
            queue = SharedQueue(tmp_path / "queue", math.inf)
            return [queue.take() for _ in range(200)]

        with ThreadPoolExecutor(4) as pool:
            taken = [place for places in pool.map(take, range(4)) for place in places]
        assert sorted(taken) == list(range(800))
        assert SharedQueue(tmp_path / "queue", time.monotonic()).take() is None

    def test_the_order_depends_on_the_names_only(self) -> None:
        from shared_queue import in_shuffled_order

        names = [f"test_{number}" for number in range(100)]
        order = in_shuffled_order(names, str)
        assert order == in_shuffled_order(reversed(names), str)
        assert sorted(order) == sorted(names)
        assert order != sorted(names)
