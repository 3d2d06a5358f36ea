"""The benchmark of collectives."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.folders import REPOSITORY


@pytest.mark.emulated
def test_the_benchmark_of_collectives_prints_a_row_for_each() -> None:
    command = [sys.executable, "-W", "error", str(REPOSITORY / "bench" / "collectives.py"), "--devices", "2"]
    command += ["--sizes", "1 KiB", "--rounds", "2"]
    done = subprocess.run(command, env={**os.environ}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert header.split() == ["2", "devices,", "1", "KiB", "tcuda"]
    assert [row.split()[0] for row in rows] == ["all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"]
    assert all(float(row.split()[1]) > 0 for row in rows)
