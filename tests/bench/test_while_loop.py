"""The benchmark of loops on the device."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.folders import REPOSITORY


@pytest.mark.emulated
def test_the_benchmark_of_loops_prints_a_row_for_each_program() -> None:
    command = [sys.executable, "-W", "error", str(REPOSITORY / "bench" / "while_loop.py"), "--repeats", "2"]
    done = subprocess.run(command, env={**os.environ}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    _, *rows = done.stdout.splitlines()
    names = [row.rsplit(maxsplit=2)[0] for row in rows]
    expected = ["one replay of a loop", "20 replays", "20 replays, flag read", "while_loop outside of captures"]
    assert names == expected
    assert all(float(row.split()[-1]) > 0 for row in rows)
