"""The script that runs CuPy's own tests under the race detector, with a stand-in for CuPy's tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.folders import REPOSITORY, TESTS

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = REPOSITORY / ".ci" / "cupy_tests" / "run.py"

CUPYS = """
import os
import unittest

import pytest
import tcuda
from support.made_races import race
from tcuda._process import races
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
    assert races._started is None
"""

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(not SCRIPT.exists(), reason="the folder .ci is in checkouts only"),
]


def test_the_script_lists_the_races_by_test(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "cupy_tests" / "some_tests"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(CUPYS)
    result = tmp_path / "races.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, "--workers", "2", "--parts", "some_tests", "--json", result],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    module = "cupy_tests/some_tests/test_some.py"
    assert lines[0].startswith("The race detector checked 6 tests with ")
    assert lines[1:] == [
        "1 race in 1 test",
        f"  1 x write after write: memset, then add; first in {module}::TestCase::test_racy",
        "2 possible races in 2 tests",
        f"  2 x write after write: fill, then add; first in {module}::test_possible[a::b]",
        "Failing without the detector too: 1 test.",
        "Failing under the detector only: 1 test.",
        f"  {module}::test_fails_under_the_detector_only",
    ]
    found = {each["test"]: each for each in json.loads(result.read_text())["found"]}
    assert len(found) == 3
    assert found[f"{module}::TestCase::test_racy"]["races"][0]["missing"].endswith(
        ".wait_stream(tcuda.default_stream())"
    )
