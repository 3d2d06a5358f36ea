"""Rounds of a work in a process without tcuda, timed there."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from loop import CALLS

_WORKER = Path(__file__).with_name("plain_worker.py")


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

    def clock(self) -> float:
        """Return the time of all rounds, divided by the number of calls in a round."""
        return self._total / CALLS
