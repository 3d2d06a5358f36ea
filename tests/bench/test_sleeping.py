"""The benchmark of pools that sleep, and two processes that share a device by turns."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.folders import REPOSITORY


@pytest.mark.alone  # the program fills the rest of the device
def test_two_processes_take_turns_and_have_the_same_bytes_as_alone() -> None:
    command = [sys.executable, str(REPOSITORY / "bench" / "sleeping.py"), "--gib", "0.02", "--rounds", "1"]
    sizes = ["--turns", "2", "--device-gib", "0.05"]
    done = subprocess.run([*command, *sizes], env={**os.environ}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "sleep and wake take" in done.stdout
    assert "0.90 of a device" in done.stdout
    assert "the same bytes as alone" in done.stdout
