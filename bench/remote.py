"""Rounds of a work in a process without tcuda, timed there."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from loop import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORKER = Path(__file__).with_name("worker_without_tcuda.py")


@functools.cache
def _process(side: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(_WORKER), side], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


class Remote:
    """A work in the process of a side. The process lives until this process ends.

    Args:
        side: ``"cupy"``, ``"torch"``, or ``"csan"`` for torch under its sanitizer.
        work: The name of the work.
    """

    def __init__(self, side: str, work: str) -> None:
        self._process = _process(side)
        self._work = work
        self._total = 0.0

    def run(self) -> None:
        """Make a round; :meth:`clock` goes forward by the time of the round."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(self._work, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of {self._process.args} has ended")
        if answer == "\n":
            pytest.skip("the side does not have this work")
        self._total += float(answer)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def clock(self) -> float:
        """Return the time of all rounds, divided by the number of calls in a round."""
        return self._total / CALLS


@contextlib.contextmanager
def on_one_core(*processes: int) -> Iterator[None]:
    """Keep the main threads of this process and of others on one core, so that all run at the same speed.

    The processes take turns, so none waits for the core. Two cores of a machine may differ by more than the cost that
    is measured, because other programs use one of them.
    """
    found = {pid: os.sched_getaffinity(pid) for pid in (0, *processes)}
    core = max(found[0])
    try:
        _keep_on({pid: {core} for pid in found})
        yield
    finally:
        _keep_on(found)


def _keep_on(cores: dict[int, set[int]]) -> None:
    with contextlib.suppress(OSError):  # a sandbox may forbid the choice of cores, and the benchmark works without
        for pid, wanted in cores.items():
            os.sched_setaffinity(pid, wanted)
