"""The door of a meeting: the address to which the ranks connect, and the connections without a proof.

Every process of the machine sees the address. So a connection stays at the door until the process at its other end has
proved that it knows the unique id. The meeting waits for no connection at the door, and reads only as many bytes as a
proof has.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import selectors
import socket
import struct
import time
from typing import NamedTuple

from tcuda._base.errors import NcclError
from tcuda._process.credentials import user_of
from tcuda.emulation.backend.nccl.wire import INVALID_USAGE

_MOST_AT_DOOR = 64
"""The number of connections without a proof; the oldest one is closed for the next. A rank speaks as it connects."""

_PROOF = hashlib.sha256().digest_size
_NUMBERS = struct.Struct("!4Q")


def address(uid: bytes) -> str:
    """Return the address of the meeting of the clique ``uid``, which is a name without a file."""
    return f"\0tcuda-nccl-{hashlib.sha256(uid).hexdigest()}"


class Hello(NamedTuple):
    """The first message of a rank.

    Attributes:
        rank: The number of the rank.
        ranks: The number of ranks that the rank expects.
        device: The index of its device.
        process: The number of its process.
    """

    rank: int
    ranks: int
    device: int
    process: int

    def packed(self, uid: bytes) -> bytes:
        """Return the bytes that only a process that knows ``uid`` can say."""
        numbers = _NUMBERS.pack(*self)
        return numbers + hmac.digest(uid, numbers, "sha256")

    @classmethod
    def unpacked(cls, said: bytes, uid: bytes) -> Hello | None:
        """Return what :meth:`packed` has packed; None for other bytes."""
        hello = cls(*_NUMBERS.unpack_from(said))
        return hello if hmac.compare_digest(hello.packed(uid), said) else None


class Door:
    """The address of a meeting.

    Args:
        uid: The unique id.

    Raises:
        NcclError: Rank 0 has joined the clique before.
    """

    def __init__(self, uid: bytes) -> None:
        self._uid = uid
        self._at_door: dict[socket.socket, bytearray] = {}
        self._listening = socket.socket(socket.AF_UNIX)
        try:
            self._listening.bind(address(uid))
        except OSError as error:
            self._listening.close()
            raise NcclError(
                INVALID_USAGE, "Two ranks 0 have joined the same clique; make a new unique_id()."
            ) from error
        self._listening.listen(socket.SOMAXCONN)
        self._listening.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)

    def wait(self, deadline: float) -> tuple[socket.socket, Hello | None]:
        """Return the next rank and its hello, or a rank that was let in before and now speaks or is gone, and None.

        The meeting then watches the rank until :meth:`forget`.

        Raises:
            TimeoutError: There is none until ``deadline``, a time of ``time.monotonic``.
        """
        while ready := self._selector.select(max(0.0, deadline - time.monotonic())):
            for key, _ in ready:
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if connection is self._listening:
                    self._accept()
                elif connection not in self._at_door:
                    return connection, None
                elif (hello := self._heard(connection)) is not None:
                    return connection, hello
        raise TimeoutError

    def forget(self, connection: socket.socket) -> None:
        """Watch a rank no more."""
        self._selector.unregister(connection)

    def close(self) -> None:
        """Close the door, and all connections at the door."""
        self._selector.close()
        for connection in (self._listening, *self._at_door.copy()):
            connection.close()
        self._at_door.clear()

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionError):  # gone since the selector has seen it
            return
        if user_of(connection) != os.geteuid():
            connection.close()
            return
        connection.setblocking(False)
        self._at_door[connection] = bytearray()
        self._selector.register(connection, selectors.EVENT_READ)
        if len(self._at_door) > _MOST_AT_DOOR:
            self._send_away(next(iter(self._at_door)))

    def _heard(self, connection: socket.socket) -> Hello | None:
        """Listen to what a connection at the door says; return a rank's hello if that is all of it."""
        said = self._at_door.get(connection)
        if said is None:
            return None
        size = _NUMBERS.size + _PROOF
        try:
            more = connection.recv(size - len(said))
        except BlockingIOError:
            return None
        except OSError:
            more = b""
        said += more
        if more and len(said) < size:
            return None
        hello = Hello.unpacked(bytes(said), self._uid) if len(said) == size else None
        if hello is None:
            self._send_away(connection)
            return None
        del self._at_door[connection]
        connection.setblocking(True)
        return hello

    def _send_away(self, connection: socket.socket) -> None:
        del self._at_door[connection]
        self._selector.unregister(connection)
        connection.close()


__all__ = ["Door", "Hello", "address"]
