"""The scheduler's part in the loss of a worker: the tasks of a group that were to run on the worker fail.

A task of a group belongs to one worker. Without this, Dask would keep the task until a worker comes that has the same
address, and the program would wait for ever.
"""

from __future__ import annotations

import asyncio
import pickle
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import SchedulerPlugin

from tcuda.dask._mailbox import GroupError

if TYPE_CHECKING:
    from distributed import Scheduler

TASK = "tcuda-group-task-"
"""The beginning of the keys of all tasks of groups."""


class LostTasks(SchedulerPlugin):
    """Lets the tasks of groups fail that have no worker.

    Args:
        scheduler: The scheduler.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Look at the new state of a task. Dask calls the method in the middle of its changes."""
        if finish == "no-worker" and _is_of_group(key):
            asyncio.get_running_loop().call_soon(self._fail, key)

    def remove_worker(self, scheduler: Scheduler, worker: str, **kwargs: Any) -> None:
        """Look at the tasks that waited for ``worker``, which has registered but never ran tasks."""
        for task in self._scheduler.unrunnable.copy():
            if _is_of_group(task.key):
                self._fail(task.key)

    def _fail(self, key: Any) -> None:
        """Let a task fail unless its worker is there, for example a worker that has paused."""
        task = self._scheduler.tasks.get(key)
        if task is None or task.state != "no-worker":
            return
        workers = task.worker_restrictions or set()
        if any(worker in self._scheduler.workers for worker in workers):
            return
        error = GroupError(
            f"The worker {', '.join(workers)}, to which the task {key} belongs, has gone. Make a new group of the "
            "workers that are there."
        )
        stimulus = f"tcuda-lost-task-{key}"
        others = self._scheduler.transition(
            key, "erred", stimulus_id=stimulus, exception=pickle.dumps(error), cause=key
        )
        self._scheduler.transitions(others, stimulus_id=stimulus)


def _is_of_group(key: Any) -> bool:
    return isinstance(key, str) and key.startswith(TASK)
