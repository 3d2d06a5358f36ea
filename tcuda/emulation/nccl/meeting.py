"""The meeting of the ranks of a clique: a thread in the process of rank 0, to which all ranks are connected.

In each round, every rank sends the same operation with its elements. The thread computes, and sends each rank its
result. The address of the meeting and the proof that a rank belongs to the clique come from the unique id.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import selectors
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._errors import NcclError
from tcuda.emulation.nccl import wire
from tcuda.emulation.nccl.operation import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TIMEOUT = 600.0
"""The seconds for which a rank waits for the other ranks."""

INTERNAL_ERROR, INVALID_USAGE = 3, 5


def address(uid: bytes) -> str:
    """Return the address of the meeting of the clique ``uid``, which is a name without a file."""
    return f"\0tcuda-nccl-{hashlib.sha256(uid).hexdigest()}"


def proof(uid: bytes, rank: int) -> str:
    """Return what only a process that knows ``uid`` can say for ``rank``."""
    return hmac.new(uid, str(rank).encode(), hashlib.sha256).hexdigest()


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
        self._uid = uid
        self._deadline = time.monotonic() + TIMEOUT
        self._door = socket.socket(socket.AF_UNIX)
        try:
            self._door.bind(address(uid))
        except OSError as error:
            self._door.close()
            raise NcclError(
                INVALID_USAGE, "Two ranks 0 have joined the same clique; make a new unique_id()."
            ) from error
        self._door.listen(ranks)
        self._members: dict[int, socket.socket] = {}
        threading.Thread(target=self._serve, name="tcuda-nccl", daemon=True).start()

    def _serve(self) -> None:
        try:
            with self._door:
                try:
                    self._admit()
                except NcclError as error:
                    self._turn_away(error)
                    raise
            for rank in self._in_order_of_answers():
                wire.send(self._members[rank], {})
            while True:
                self._round()
        except Exception as error:
            _tell(error, self._members.values())
        finally:
            for member in self._members.values():
                member.close()

    def _admit(self) -> None:
        """Let all ranks connect."""
        places: dict[tuple[int, int], int] = {}
        while len(self._members) < self._ranks:
            self._wait_at_door()
            connection, _ = self._door.accept()
            header = self._hello(connection)
            if header is None:
                connection.close()
                continue
            rank = header["rank"]
            before = self._members.setdefault(rank, connection)
            if before is not connection:
                self._members[self._ranks] = connection  # the connection gets the error too
                raise NcclError(INVALID_USAGE, f"Two ranks {rank} have joined the clique.")
            if header["ranks"] != self._ranks:
                text = f"Rank {rank} joins {header['ranks']} ranks, and rank 0 joins {self._ranks}."
                raise NcclError(INVALID_USAGE, text)
            place = header["process"], header["device"]
            if places.setdefault(place, rank) != rank:
                text = f"Duplicate GPU detected: rank {rank} and rank {places[place]} are both on device {place[1]}."
                raise NcclError(INVALID_USAGE, text)

    def _turn_away(self, error: NcclError) -> None:
        """Tell ``error`` to the ranks that have connected, and to those that connect later."""
        _tell(error, self._members.values())
        while (left := self._deadline - time.monotonic()) > 0:
            self._door.settimeout(left)
            try:
                connection, _ = self._door.accept()
            except TimeoutError:
                return
            self._hello(connection)  # a connection that closes with unread bytes loses the error
            _tell(error, [connection])
            connection.close()

    def _hello(self, connection: socket.socket) -> dict[str, Any] | None:
        """Return what a rank says when it connects; None if the other side does not know the unique id."""
        connection.settimeout(TIMEOUT)
        try:
            header, _ = wire.receive(connection)
        except (NcclError, ValueError):
            return None
        known = hmac.compare_digest(str(header.get("proof")), proof(self._uid, header.get("rank", 0)))
        connection.settimeout(None)
        return header if known else None

    def _wait_at_door(self) -> None:
        """Wait until a rank knocks.

        Raises:
            NcclError: A rank that had joined is gone, or the time is over.
        """
        with selectors.DefaultSelector() as selector:
            for waiting in (self._door, *self._members.values()):
                selector.register(waiting, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select(max(0.0, self._deadline - time.monotonic()))}
        if not ready:
            missing = sorted(set(range(self._ranks)) - self._members.keys())
            raise NcclError(wire.REMOTE_ERROR, f"The ranks {missing} have not joined for {TIMEOUT} seconds.")
        for rank, member in self._members.items():
            if member in ready:  # no rank speaks before all have joined
                raise NcclError(wire.REMOTE_ERROR, f"Rank {rank} is gone.")

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
