"""The benchmark of changed graphs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.folders import REPOSITORY


@pytest.mark.emulated
def test_the_benchmark_of_changed_graphs_prints_a_row_for_each_program() -> None:
    command = [sys.executable, "-W", "error", str(REPOSITORY / "bench" / "changed_graphs.py"), "--rounds", "1"]
    done = subprocess.run([*command, "--nodes", "3"], env={**os.environ}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    _, *rows = [row.split() for row in done.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["3", "capture"], ["3", "replace"], ["3", "update"]]
    assert all(float(row[2]) > 0 for row in rows)
