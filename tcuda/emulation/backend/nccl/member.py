"""A rank of a clique whose ranks join one by one, in threads and processes."""

from __future__ import annotations

import atexit
import os
import selectors
import socket
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tcuda._base.errors import NcclError
from tcuda._process.credentials import user_of
from tcuda._process.fork import call_in_child
from tcuda.emulation.backend.nccl import meeting, wire
from tcuda.emulation.backend.nccl.door import Hello, address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.backend.nccl.operation import Operation

_POLL = 0.01
"""The seconds between two attempts to reach rank 0."""

_connections: set[socket.socket] = set()
"""The connections of all members, which stay open until the process ends, as the communicators of NCCL do."""


class Member:
    """A rank, which is connected to the meeting of its clique.

    Args:
        ranks: The number of ranks.
        uid: The unique id.
        rank: The number of the rank.
        device: The index of the device.

    Attributes:
        rank: The number of the rank.
        ranks: The number of ranks.
        connection: The connection to the meeting.

    Raises:
        NcclError: The ranks do not fit together, or a rank does not join.
    """

    def __init__(self, ranks: int, uid: bytes, rank: int, device: int) -> None:
        self.rank = rank
        self.ranks = ranks
        if rank == 0:
            meeting.Meeting(ranks, uid)
        self.connection = _connected(address(uid))
        _connections.add(self.connection)
        try:
            wire.send_bytes(self.connection, Hello(rank, ranks, device, os.getpid()).packed(uid))
            wire.receive(self.connection)
        except BaseException:
            self.connection.close()
            raise

    def send(self, operation: Operation, payload: bytes | memoryview) -> None:
        """Send the elements of this rank to the meeting.

        Raises:
            NcclError: A rank of the clique is gone.
        """
        try:
            wire.send(self.connection, asdict(operation), payload)
        except NcclError:
            wire.receive(self.connection)  # raises the error with which the meeting has ended
            raise


def exchange(members: Sequence[Member], operation: Operation, given: Sequence[bytes | memoryview]) -> list[bytearray]:
    """Do a collective: send the elements of ``members`` to the other ranks, and return what each member gets.

    The host waits until all ranks of the clique call the same collective.

    Args:
        members: The members of this process that take part in the same call.
        operation: The collective.
        given: The bytes that each member gives; empty if it gives nothing.

    Raises:
        NcclError: A rank is gone, calls another collective, or has not called for a long time.
    """
    got: dict[int, bytearray] = {}
    try:
        # All members send first, because the meeting answers when all ranks have sent.
        for member, payload in zip(members, given, strict=True):
            member.send(operation, payload)
        with selectors.DefaultSelector() as selector:
            for place, member in enumerate(members):
                selector.register(member.connection, selectors.EVENT_READ, place)
            while len(got) < len(members):
                ready = selector.select(meeting.TIMEOUT)
                # Without an answer, the first member that is left raises the error of its own timeout.
                place = next(iter([key.data for key, _ in ready] or set(range(len(members))) - got.keys()))
                _, got[place] = wire.receive(members[place].connection)
                selector.unregister(members[place].connection)
    except BaseException:
        # A rank that has not got its result cannot go on, and the other ranks see that the rank is gone.
        for member in members:
            member.connection.close()
        raise
    return [got[place] for place in range(len(members))]


def _connected(place: str) -> Any:
    """Return a connection to the address ``place``, as soon as rank 0 listens there."""
    deadline = time.monotonic() + meeting.TIMEOUT
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(meeting.TIMEOUT)
        try:
            connection.connect(place)
        except (ConnectionRefusedError, BlockingIOError):  # rank 0 does not listen, or many knock at once
            connection.close()
            if time.monotonic() > deadline:
                reason = f"Rank 0 has not joined the clique for {meeting.TIMEOUT} seconds."
                raise NcclError(wire.REMOTE_ERROR, reason) from None
            time.sleep(_POLL)
        else:
            if user_of(connection) == os.geteuid():
                return connection
            connection.close()
            raise NcclError(wire.REMOTE_ERROR, "Rank 0 is a process of another user.")


def _close() -> None:
    while _connections:
        _connections.pop().close()


atexit.register(_close)
call_in_child(_close)  # so that the other ranks see when the parent is gone
