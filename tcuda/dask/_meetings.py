"""The scheduler's record of the groups of workers that work together, so that no worker waits for one that has gone.

The ranks of a group join a *meeting*. A meeting begins when all ranks have joined. The scheduler tells the ranks of a
meeting that another rank has gone: the worker has died, or the task has left.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import SchedulerPlugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from distributed import Scheduler

JOIN = "tcuda_join"
LEAVE = "tcuda_leave"
GONE = "tcuda-gone"
"""The messages from a worker to the scheduler, and from the scheduler to a worker."""


class _Meeting:
    """The ranks that have joined.

    Args:
        name: The name of the meeting, which no other meeting has.
        addresses: The addresses of the workers, by rank.
    """

    def __init__(self, name: str, addresses: Sequence[str]) -> None:
        self.name = name
        self.addresses = list(addresses)
        self.facts: dict[int, Mapping[str, Any]] = {}
        self.left: set[int] = set()
        self.begun: asyncio.Future[list[Mapping[str, Any]]] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        if not self.begun.done():
            self.begun.set_exception(error)
            self.begun.exception()  # so that no warning is given if nobody waits any more


class Meetings(SchedulerPlugin):
    """The meetings of all groups.

    Args:
        send: A function that sends a message to the worker with an address.
        is_alive: A function that tells whether the worker with an address is registered.
    """

    def __init__(self, send: Callable[[str, dict[str, Any]], None], is_alive: Callable[[str], bool]) -> None:
        self._send = send
        self._is_alive = is_alive
        self._numbers = itertools.count()
        self._open: dict[str, _Meeting] = {}
        self._begun: dict[str, _Meeting] = {}

    async def join(
        self, group: str, rank: int, addresses: Sequence[str], facts: Mapping[str, Any], timeout: float
    ) -> dict[str, Any]:
        """Wait until all ranks of ``group`` have joined.

        Args:
            group: The name of the group.
            rank: The rank that joins.
            addresses: The addresses of the workers, by rank.
            facts: What the other ranks must know.
            timeout: The seconds after which the meeting fails.

        Returns:
            The name of the meeting (``meeting``) and the facts of all ranks (``facts``).

        Raises:
            RuntimeError: A worker of the group has gone, or the rank has joined twice.
            TimeoutError: Not all ranks have joined in time.
        """
        meeting = self._open.get(group)
        if meeting is None:
            meeting = self._open[group] = _Meeting(f"{group}/{next(self._numbers)}", addresses)
        elif rank in meeting.facts:
            self._open.pop(group)
            meeting.fail(RuntimeError(f"The rank {rank} of the group {group} has joined a second time."))
            meeting = self._open[group] = _Meeting(f"{group}/{next(self._numbers)}", addresses)
        meeting.facts[rank] = facts
        for address in addresses:
            if not self._is_alive(address):
                self._fail(group, RuntimeError(f"The worker {address} of the group {group} has gone."))
                break
        else:
            if len(meeting.facts) == len(addresses):
                self._open.pop(group)
                self._begun[meeting.name] = meeting
                meeting.begun.set_result([meeting.facts[rank] for rank in range(len(addresses))])
        await asyncio.wait([meeting.begun], timeout=timeout)
        if not meeting.begun.done():
            missing = sorted(set(range(len(addresses))) - meeting.facts.keys())
            self._fail(
                group, TimeoutError(f"The ranks {missing} of the group {group} have not joined within {timeout} s.")
            )
        return {"meeting": meeting.name, "facts": meeting.begun.result()}

    def leave(self, meeting: str, rank: int, reason: str, calls: int | None) -> None:
        """Note that ``rank`` takes part no more, and tell the other ranks.

        Args:
            meeting: The name of the meeting.
            rank: The rank.
            reason: Why the rank leaves.
            calls: The number of collectives of NCCL that the rank has completed; None if this is not known.
        """
        known = self._begun.get(meeting)
        if known is not None:
            self._tell(known, rank, reason, calls)

    def remove_worker(self, scheduler: Scheduler, worker: str, **kwargs: Any) -> None:
        """Let the meetings of ``worker`` fail, or tell their other ranks."""
        for group, meeting in self._open.copy().items():
            if worker in meeting.addresses:
                self._fail(group, RuntimeError(f"The worker {worker} of the group {group} has gone."))
        for meeting in self._begun.copy().values():
            if worker in meeting.addresses:
                self._tell(meeting, meeting.addresses.index(worker), f"its worker {worker} has gone", None)

    def _fail(self, group: str, error: Exception) -> None:
        self._open.pop(group).fail(error)

    def _tell(self, meeting: _Meeting, rank: int, reason: str, calls: int | None) -> None:
        meeting.left.add(rank)
        if len(meeting.left) == len(meeting.addresses):
            del self._begun[meeting.name]
            return
        for other, address in enumerate(meeting.addresses):
            if other not in meeting.left and self._is_alive(address):
                self._send(
                    address, {"op": GONE, "meeting": meeting.name, "rank": rank, "reason": reason, "calls": calls}
                )
