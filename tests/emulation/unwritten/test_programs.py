"""Pairs of programs: the right one reports nothing, and the wrong one the line that allocated unwritten memory."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.emulated

FILE = Path(__file__).with_name("programs.py")
SOURCE = FILE.read_text().splitlines()
NAMES = re.findall(r"@program\ndef (\w+)", FILE.read_text())
OF_SHARED_MEMORY = {
    "shared_memory": 0,
    "dynamic_shared_memory_of_the_second_block": 1,
    "shared_memory_behind_a_barrier_of_the_grid": 0,
}
"""The block that reads shared memory which nothing has written."""


@functools.cache
def run(schedule: str) -> subprocess.CompletedProcess[str]:
    chosen = {
        "TCUDA_RUNTIME": "emulated",
        "TCUDA_EMULATED_DEVICES": "2",
        "TCUDA_EMULATED_SCHEDULE": schedule,
        "TCUDA_EMULATED_CHECKS": "memory,init",
    }
    command = [sys.executable, "-W", "error", str(FILE)]
    return subprocess.run(
        command, env={**os.environ, **chosen}, capture_output=True, text=True, timeout=300, check=False
    )


def outcomes(schedule: str) -> Mapping[str, tuple[str, str]]:
    """Return what each program reports, right and wrong, all of which one process runs."""
    done = run(schedule)
    assert (done.returncode, done.stderr) == (0, "")
    found: Mapping[str, tuple[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("name", NAMES)
def test_the_right_program_is_not_accused(name: str, schedule: str) -> None:
    assert outcomes(schedule)[name][0] == ""


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_SHARED_MEMORY])
def test_the_wrong_program_is_found_with_the_line_that_allocated(name: str, schedule: str) -> None:
    found = re.search(r"allocated at \S*programs.py:(\d+)", outcomes(schedule)[name][1])
    assert found is not None
    assert SOURCE[int(found[1]) - 1].endswith("# here")


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_shared_memory_is_named(schedule: str) -> None:
    for name, block in OF_SHARED_MEMORY.items():
        found = outcomes(schedule)[name][1]
        assert "element 3 of `tile` in shared memory (double" in found
        assert (
            f"thread (4, 0, 0) of block ({block}, 0, 0) reads\n        y[threadIdx.x] = tile[7 - threadIdx.x];" in found
        )


def test_each_program_is_there() -> None:
    assert list(outcomes("eager")) == NAMES
