"""The speed of kernels on emulated devices beside loops in C."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

_RUNS = 3
"""The runs after which a kernel is slow, because other programs may slow one side of a run down."""


@pytest.mark.emulated
@pytest.mark.skipif(shutil.which("g++") is None, reason="the bounds are those of gcc")
def test_kernels_of_plain_loops_keep_their_part_of_the_speed_of_loops_in_c(
    bench_module: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "g++")
    slow = expected = list(bench_module("kernels_beside_c").WORKS)
    command = [sys.executable, "-W", "error", str(REPOSITORY / "bench" / "kernels_beside_c.py")]
    for _ in range(_RUNS):
        done = subprocess.run([*command, *slow], capture_output=True, text=True, timeout=300, check=False)
        rows = [row.split(" | ") for row in done.stdout.splitlines()[2:]]
        assert [name.removeprefix("| ") for name, *_ in rows] == slow, done.stderr
        slow = [name.removeprefix("slow: ") for name in done.stderr.splitlines()]
        assert (done.returncode == 0) == (not slow)
        if not slow:
            break
    assert not slow, done.stdout
    assert len(expected) == 12
