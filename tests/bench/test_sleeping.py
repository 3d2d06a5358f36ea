"""The benchmark of pools that sleep, and two processes that share a device by turns.

On a GPU, the benchmark takes all memory that the processes do not need, which other tests would lack.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.folders import REPOSITORY

pytestmark = pytest.mark.emulated


def measured(*options: str) -> str:
    """Return the output of the benchmark with small arrays."""
    command = [sys.executable, str(REPOSITORY / "bench" / "sleeping.py"), "--gib", "0.02", "--rounds", "1"]
    sizes = ["--device-gib", "0.05", *options]
    done = subprocess.run([*command, *sizes], env={**os.environ}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.alone  # the program fills the rest of the device
def test_two_processes_take_turns_and_have_the_same_bytes_as_alone() -> None:
    printed = measured("--turns", "2")
    assert "round 1, sleep and wake: " in printed
    assert "sleep and wake take" in printed
    assert "0.90 of a device" in printed
    assert "2 of 2 turns each" in printed
    assert "the same bytes as alone" in printed


def test_no_turn_begins_after_the_time_for_them() -> None:
    printed = measured("--gib", "0", "--turns", "50", "--seconds", "0")
    assert "1 of 50 turns each" in printed
    assert "sleep and wake take" not in printed
