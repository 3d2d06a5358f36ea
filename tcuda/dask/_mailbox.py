"""Messages between the ranks of a meeting, through Dask's own connections between workers."""

from __future__ import annotations

import asyncio
import collections
import threading
from typing import TYPE_CHECKING, Any

from distributed.protocol.serialize import to_serialize
from distributed.utils import sync

from tcuda.dask._meetings import GONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from distributed import Worker

_DELIVER = "tcuda_deliver"
_ATTRIBUTE = "_tcuda_mailboxes"


class GroupError(RuntimeError):
    """A rank of a group has gone, so the collective cannot be completed.

    Example:
        >>> def leave(group):
        ...     with group.join() as ranks:
        ...         if ranks.rank == 1:
        ...             return "left"
        ...         try:
        ...             ranks.barrier()
        ...         except tcuda.dask.GroupError:
        ...             return "alone"
        >>> client.gather(tcuda.dask.group(client).submit(client, leave))
        ['alone', 'left']
    """


class Mailbox:
    """The messages to this rank.

    Attributes:
        meeting: The name of the meeting.

    Args:
        worker: The worker.
        meeting: The name of the meeting.
        rank: The number of this rank.
        addresses: The addresses of the workers, by rank.
        on_gone: A function that is called, on the thread of the event loop, when another rank has gone. The argument
            is the number of collectives of NCCL that the rank has completed, or None.
    """

    def __init__(
        self, worker: Worker, meeting: str, rank: int, addresses: Sequence[str], on_gone: Callable[[int | None], None]
    ) -> None:
        self._worker = worker
        self.meeting = meeting
        self._rank = rank
        self._addresses = addresses
        self._on_gone = on_gone
        self._changed = threading.Condition()
        self._messages: dict[tuple[int, int], tuple[str, Any]] = {}
        self._gone: dict[int, str] = {}
        self._closed: str | None = None

    def exchange(self, step: int, call: str, outgoing: Mapping[int, Any], incoming: Sequence[int]) -> dict[int, Any]:
        """Send ``outgoing``, and return what the ranks ``incoming`` have sent in the same step.

        Args:
            step: The number of the exchange, which is the same for all ranks.
            call: The call that a program has made, which must be the same for all ranks.
            outgoing: The message to each rank, a NumPy array.
            incoming: The ranks that send a message to this rank.

        Raises:
            GroupError: A rank has gone, or has made another call.
        """
        if outgoing:
            sync(self._worker.loop, self._send, step, call, outgoing)
        with self._changed:
            while True:
                if self._closed is not None:
                    raise GroupError(f"The rank {self._rank} has left {self.meeting}: {self._closed}.")
                missing = [rank for rank in incoming if (step, rank) not in self._messages]
                for rank in missing:
                    if rank in self._gone:
                        raise self._error(rank)
                if not missing:
                    return {rank: self._opened(rank, call, *self._messages.pop((step, rank))) for rank in incoming}
                self._changed.wait()

    def error(self) -> GroupError:
        """Return the error that names a rank that has gone."""
        with self._changed:
            if self._closed is not None or not self._gone:
                return GroupError(f"The rank {self._rank} has left {self.meeting}: {self._closed}.")
            return self._error(min(self._gone))

    def close(self, reason: str) -> None:
        """Let a thread that waits for a message raise an error."""
        with self._changed:
            self._closed = reason
            self._changed.notify_all()

    def _opened(self, rank: int, call: str, other: str, message: Any) -> Any:
        if other == call:
            return message
        raise GroupError(
            f"The rank {rank} of {self.meeting} has called {other}, and the rank {self._rank} {call}. All ranks must "
            "make the same calls in the same order, with arrays of the same size and dtype."
        )

    async def _send(self, step: int, call: str, outgoing: Mapping[int, Any]) -> None:
        await asyncio.gather(*(self._send_to(rank, step, call, message) for rank, message in outgoing.items()))

    async def _send_to(self, rank: int, step: int, call: str, message: Any) -> None:
        # If the worker dies while Dask connects to it, the attempt ends. An attempt that begins after the death goes on
        # until Dask's timeout, which is 30 s by default.
        with self._changed:
            if rank in self._gone:
                raise self._error(rank)
        peer = self._worker.rpc(self._addresses[rank])
        deliver = getattr(peer, _DELIVER)
        try:
            known = await deliver(
                meeting=self.meeting, step=step, sender=self._rank, call=call, message=to_serialize(message)
            )
        except OSError as error:
            raise GroupError(f"The rank {rank} of {self.meeting} cannot be reached: {error}") from error
        if not known:
            raise GroupError(f"The rank {rank} has left {self.meeting}.")

    def put(self, step: int, sender: int, call: str, message: Any) -> None:
        """Take a message; the thread of the event loop calls this method."""
        with self._changed:
            self._messages[step, sender] = call, message
            self._changed.notify_all()

    def note_gone(self, rank: int, reason: str, calls: int | None) -> None:
        """Note that ``rank`` has gone; the thread of the event loop calls this method."""
        with self._changed:
            self._gone[rank] = reason
            self._changed.notify_all()
        self._on_gone(calls)

    def _error(self, rank: int) -> GroupError:
        return GroupError(f"The rank {rank} of {self.meeting} has gone: {self._gone[rank]}.")


class Mailboxes:
    """The mailboxes of a worker, by the name of the meeting.

    A message may arrive before this worker knows that the meeting has begun. Such messages are kept as long as this
    worker is joining the group.
    """

    def __init__(self) -> None:
        self._open: dict[str, Mailbox] = {}
        self._joining: collections.Counter[str] = collections.Counter()
        self._early: dict[str, list[Callable[[Mailbox], None]]] = {}

    async def begin(self, group: str) -> None:
        """Keep the messages for meetings of ``group`` from now on."""
        self._joining[group] += 1

    async def open(self, group: str, mailbox: Mailbox | None) -> None:
        """Let the messages of the meeting reach ``mailbox``; forget the early messages if None."""
        self._joining[group] -= 1
        if mailbox is not None:
            self._open[mailbox.meeting] = mailbox
            for message in self._early.pop(mailbox.meeting, ()):
                message(mailbox)
        if not self._joining[group]:
            del self._joining[group]
            for meeting in [meeting for meeting in self._early if _group_of(meeting) == group]:
                del self._early[meeting]

    async def close(self, mailbox: Mailbox) -> None:
        """Take no more messages for ``mailbox``."""
        self._open.pop(mailbox.meeting, None)

    def close_all(self, reason: str) -> None:
        """Let all threads that wait for a message raise an error."""
        for mailbox in list(self._open.values()):
            mailbox.close(reason)

    def deliver(self, meeting: str, step: int, sender: int, call: str, message: Any) -> bool:
        """Take a message of another rank; return False if this worker has left the meeting."""
        return self._pass(meeting, lambda mailbox: mailbox.put(step, sender, call, message))

    def gone(self, meeting: str, rank: int, reason: str, calls: int | None) -> None:
        """Take the scheduler's message that a rank has gone."""
        self._pass(meeting, lambda mailbox: mailbox.note_gone(rank, reason, calls))

    def _pass(self, meeting: str, message: Callable[[Mailbox], None]) -> bool:
        mailbox = self._open.get(meeting)
        if mailbox is not None:
            message(mailbox)
        elif self._joining[_group_of(meeting)]:
            self._early.setdefault(meeting, []).append(message)
        else:
            return False
        return True


def add_mailboxes(worker: Worker) -> None:
    """Let ``worker`` take messages for its mailboxes."""
    if hasattr(worker, _ATTRIBUTE):
        return
    mailboxes = Mailboxes()
    setattr(worker, _ATTRIBUTE, mailboxes)
    worker.handlers[_DELIVER] = mailboxes.deliver
    worker.stream_handlers[GONE] = mailboxes.gone


def end_collectives(worker: Worker) -> None:
    """Let the collectives on ``worker`` that wait for messages raise an error."""
    mailboxes: Mailboxes | None = getattr(worker, _ATTRIBUTE, None)
    if mailboxes is not None:
        mailboxes.close_all("the worker is closing, or has lost its plugin")


def mailboxes_of(worker: Worker) -> Mailboxes:
    """Return the mailboxes of ``worker``.

    Raises:
        RuntimeError: The worker has no plugin for its device.
    """
    found: Mailboxes | None = getattr(worker, _ATTRIBUTE, None)
    if found is None:
        raise RuntimeError(
            f"The worker {worker.name!r} has no device. Register the plugin by client.register_plugin("
            "tcuda.dask.Devices()), or start the worker with `--preload tcuda.dask`."
        )
    return found


def _group_of(meeting: str) -> str:
    return meeting.rpartition("/")[0]
