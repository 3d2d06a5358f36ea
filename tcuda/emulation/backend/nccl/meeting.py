"""The meeting of the ranks of a clique: a thread in the process of rank 0, to which all ranks are connected.

In each round, every rank sends the same operation with its elements. The thread computes, and sends each rank its
result.
"""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._base.errors import NcclError
from tcuda._process.fork import call_in_child
from tcuda.emulation.backend.nccl import wire
from tcuda.emulation.backend.nccl.door import Door
from tcuda.emulation.backend.nccl.operation import Operation
from tcuda.emulation.backend.nccl.wire import INTERNAL_ERROR, INVALID_USAGE

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator, Mapping

TIMEOUT = 600.0
"""The seconds for which a rank waits for the other ranks."""

_meetings: set[Meeting] = set()
"""The meetings of this process."""


class Meeting:
    """A thread that serves the ranks of a clique until a rank is gone.

    Args:
        ranks: The number of ranks.
        uid: The unique id.

    Raises:
        NcclError: Rank 0 has joined the clique before.
    """

    def __init__(self, ranks: int, uid: bytes) -> None:
        self._ranks = ranks
        self._deadline = time.monotonic() + TIMEOUT
        self._members: dict[int, socket.socket] = {}
        self._door = Door(uid)
        _meetings.add(self)
        threading.Thread(target=self._serve, name="tcuda-nccl", daemon=True).start()

    def close(self) -> None:
        """Close all connections: of a thread that ends, and in a forked child, so that the parent alone keeps them."""
        self._door.close()
        for member in list(self._members.values()):
            member.close()

    def _serve(self) -> None:
        try:
            try:
                self._admit()
            except Exception as error:
                self._turn_away(error)
                return
            self._door.close()
            for rank in self._in_order_of_answers():
                wire.send(self._members[rank], {})
            while True:
                self._round()
        except Exception as error:
            _tell(error, self._members.values())
        finally:
            self.close()
            _meetings.discard(self)

    def _admit(self) -> None:
        """Let all ranks connect.

        Raises:
            NcclError: The ranks do not fit together, a rank that had joined is gone, or the time is over.
        """
        places: dict[tuple[int, int], int] = {}
        while len(self._members) < self._ranks:
            try:
                connection, hello = self._door.wait(self._deadline)
            except TimeoutError:
                missing = sorted(set(range(self._ranks)) - self._members.keys())
                text = f"The ranks {missing} have not joined for {TIMEOUT} seconds."
                raise NcclError(wire.REMOTE_ERROR, text) from None
            if hello is None:  # no rank speaks before all have joined
                gone = next(rank for rank, member in self._members.items() if member is connection)
                raise NcclError(wire.REMOTE_ERROR, f"Rank {gone} is gone.")
            rank = hello.rank
            before = self._members.setdefault(rank, connection)
            if before is not connection:
                self._members[self._ranks] = connection  # the connection gets the error too
                raise NcclError(INVALID_USAGE, f"Two ranks {rank} have joined the clique.")
            if hello.ranks != self._ranks:
                text = f"Rank {rank} joins {hello.ranks} ranks, and rank 0 joins {self._ranks}."
                raise NcclError(INVALID_USAGE, text)
            place = hello.process, hello.device
            if places.setdefault(place, rank) != rank:
                text = (
                    f"Duplicate GPU detected: rank {rank} and rank {places[place]} are both on device {hello.device}."
                )
                raise NcclError(INVALID_USAGE, text)

    def _turn_away(self, error: Exception) -> None:
        """Tell ``error`` to the ranks that have connected, and to those that connect later."""
        members = self._members.values()
        _tell(error, members)
        for member in members:
            self._door.forget(member)
            member.close()
        with contextlib.suppress(TimeoutError):
            while True:
                connection, _ = self._door.wait(self._deadline)
                _tell(error, [connection])
                self._door.forget(connection)
                connection.close()

    def _round(self) -> None:
        """Serve one collective."""
        headers: dict[int, dict[str, Any]] = {}
        given: dict[int, bytearray] = {}
        for rank in self._arriving():
            try:
                headers[rank], given[rank] = wire.receive(self._members[rank])
            except NcclError as error:
                raise NcclError(wire.REMOTE_ERROR, f"Rank {rank} is gone.") from error
        if any(header != headers[0] for header in headers.values()):
            raise NcclError(INVALID_USAGE, f"The ranks call different collectives: {_listed(headers)}.")
        operation = Operation(**headers[0])
        empty = np.empty(0, operation.dtype)
        arrays = [np.frombuffer(given[rank], operation.dtype) if given[rank] else empty for rank in sorted(given)]
        results = operation.results(arrays)
        for rank in self._in_order_of_answers():
            payload = np.ascontiguousarray(results[rank]).data.cast("B") if operation.gets(rank) else b""
            wire.send(self._members[rank], {}, payload)

    def _in_order_of_answers(self) -> Iterator[int]:
        """Yield the ranks. Rank 0 is last: with an answer, its process may exit, and this thread ends with it."""
        return reversed(range(self._ranks))

    def _arriving(self) -> Iterator[int]:
        """Yield each rank when its message arrives."""
        with selectors.DefaultSelector() as selector:
            for rank, member in self._members.items():
                selector.register(member, selectors.EVENT_READ, rank)
            for _ in self._members:
                [(key, _), *_] = selector.select()
                selector.unregister(key.fileobj)
                yield key.data


def _tell(error: Exception, connections: Iterable[socket.socket]) -> None:
    """Send ``error`` to ``connections``."""
    known = error if isinstance(error, NcclError) else NcclError(INTERNAL_ERROR, repr(error))
    for connection in connections:
        with contextlib.suppress(NcclError):
            wire.send(connection, {"status": known.status, "details": known.details})


def _listed(headers: Mapping[int, Mapping[str, Any]]) -> str:
    return "; ".join(f"rank {rank} calls {header}" for rank, header in sorted(headers.items()))


def _close_in_child() -> None:
    while _meetings:
        _meetings.pop().close()


call_in_child(_close_in_child)
