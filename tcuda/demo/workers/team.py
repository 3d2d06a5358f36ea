"""A group of workers that run the epochs together, until one of them is lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import uuid
from typing import TYPE_CHECKING, Any, NoReturn

from distributed import Client, Future, KilledWorker, as_completed

from tcuda.dask import Group, GroupError
from tcuda.demo.workers import tasks
from tcuda.demo.workers.share import LostMemberError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tcuda.demo.config import Config
    from tcuda.demo.digits import Digits
    from tcuda.demo.workers.share import Share, State

# Seconds.
_BETWEEN_LOOKS = 0.05
_UNTIL_CAUSE_IS_KNOWN = 10
"""The time within which the cause of an error is known: the task of a lost worker, or another task, fails."""
_UNTIL_IDLE = 10
"""The time within which a worker ends its part of an epoch that can no longer succeed."""

_CONSEQUENCES = (KilledWorker, OSError, RuntimeError, asyncio.TimeoutError)  # an OSError since Python 3.11
"""The types of errors of a task that the loss or the error of another worker may cause."""


class WorkerLostError(Exception):
    """A worker of the team is gone.

    Attributes:
        addresses: The addresses of the lost workers.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__(", ".join(addresses))
        self.addresses = tuple(addresses)


class Team:
    """Workers that have joined for a training.

    Args:
        client: The client of the cluster.
        addresses: The addresses of the workers.
        config: The settings.
        digits: The data.

    Attributes:
        addresses: The addresses of the workers, by their rank.
    """

    def __init__(self, client: Client, addresses: Sequence[str], config: Config, digits: Digits) -> None:
        self.addresses = tuple(addresses)
        self._client = client
        self._config = config
        self._digits = digits
        self._group = Group(f"tcuda-demo-{uuid.uuid4().hex}", self.addresses)
        self._futures: list[Future[Any]] = []
        self._epochs = 0

    def join(self) -> None:
        """Let all workers join the team.

        Raises:
            WorkerLostError: A worker is gone.
        """
        self._run(tasks.join, self._config, self._digits)

    def epoch(self, before: State | None, *, last: bool) -> list[Share]:
        """Run an epoch, and return the shares of all workers.

        Args:
            before: The state before the epoch; None before the first epoch, and after an epoch of this team.
            last: Whether the epoch is the last one.

        Raises:
            WorkerLostError: A worker is gone.
        """
        # A share of the epoch before is on the workers already.
        start = self._futures[0] if self._epochs else before
        shares = self._run(tasks.run_epoch, start, last=last)
        self._epochs += 1
        return shares

    def dissolve(self) -> None:
        """Let all workers leave the team. A worker that cannot leave is started again."""
        if self._client.status != "running":  # the scheduler is gone
            return
        self._client.cancel(self._futures)
        left = self._present()
        if left:
            self._client.run(tasks.leave, self._group, workers=left, on_error="ignore")
        deadline = time.monotonic() + _UNTIL_IDLE
        while busy := self._busy():
            if time.monotonic() > deadline:
                self._client.run(tasks.end_process, workers=busy, on_error="ignore")  # Dask starts another one.
                self._wait_until_gone(busy)
                return
            time.sleep(_BETWEEN_LOOKS)

    def _run(self, task: Any, *arguments: Any, **options: Any) -> list[Any]:
        """Run ``task`` on every worker, and return the results.

        Raises:
            WorkerLostError: A worker is gone.
            RuntimeError: The scheduler is gone.
        """
        self._futures = self._group.submit(self._client, task, *arguments, **options)
        left = set(self._futures)
        for future in as_completed(self._futures, loop=self._client.loop):
            left.discard(future)
            if future.status != "finished":
                self._explain(future, left)
        return list(self._client.gather(self._futures))

    def _explain(self, failed: Future[Any], left: Collection[Future[Any]]) -> NoReturn:
        """Raise the error of a task, or the loss of a worker.

        If a worker is gone or fails, the tasks of the other workers fail too. So the first error may be a consequence.

        Args:
            failed: The task that has failed first.
            left: The tasks that may still run.
        """
        errors = []
        with contextlib.suppress(asyncio.TimeoutError):
            ends = as_completed(left, loop=self._client.loop, timeout=_UNTIL_CAUSE_IS_KNOWN)
            for future in itertools.chain([failed], ends):
                if future.status == "finished":
                    continue
                if future.status != "error":
                    raise RuntimeError("The tasks were cancelled, because the scheduler is gone or has restarted.")
                lost, error = self._lost(), future.exception()
                if not isinstance(error, _CONSEQUENCES):
                    raise error
                if lost or isinstance(error, LostMemberError):
                    raise WorkerLostError(lost) from error
                errors.append(error)
        raise next((error for error in errors if not isinstance(error, GroupError)), errors[0])

    def _wait_until_gone(self, addresses: Sequence[str]) -> None:
        """Wait a while until the scheduler has noticed that the workers are gone."""
        deadline = time.monotonic() + _UNTIL_CAUSE_IS_KNOWN
        while not self._client.nthreads().keys().isdisjoint(addresses) and time.monotonic() < deadline:
            time.sleep(_BETWEEN_LOOKS)

    def _present(self) -> list[str]:
        present = self._client.nthreads()
        return [address for address in self.addresses if address in present]

    def _lost(self) -> list[str]:
        present = self._present()
        return [address for address in self.addresses if address not in present]

    def _busy(self) -> list[str]:
        left = self._present()
        if not left:
            return []
        answers = self._client.run(tasks.is_busy, workers=left, on_error="ignore")
        return [address for address, busy in answers.items() if busy]
