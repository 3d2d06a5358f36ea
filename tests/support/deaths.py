"""Functions that a test runs on a worker of Dask, so that the worker dies or stops in the middle of a training."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any


def die_at(batch: int) -> int:
    """Let this worker kill itself, as by ``kill -9``, at its batch number ``batch``; return its process identifier."""
    _at(batch, lambda: os.kill(os.getpid(), signal.SIGKILL))
    return os.getpid()


def stop_at(batch: int, killed: int) -> int:
    """Let this worker kill the process ``killed`` at its batch number ``batch``, and then wait for ever.

    Returns:
        The process identifier of this worker.
    """

    def stop() -> None:
        os.kill(killed, signal.SIGKILL)
        threading.Event().wait()

    _at(batch, stop)
    return os.getpid()


def fail_at(batch: int) -> None:
    """Let this worker raise an error at its batch number ``batch``, once."""

    def fail() -> None:
        raise ZeroDivisionError("the worker divides by zero")

    _at(batch, fail)


def _at(batch: int, happen: Any) -> None:
    from tcuda.demo.workers.member import Member

    step = Member._step
    left = batch

    def counting(self: Member, *arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            happen()
        step(self, *arguments)

    Member._step = counting  # type: ignore[method-assign]
