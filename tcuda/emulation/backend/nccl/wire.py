"""Messages between the ranks of a clique: a header in JSON, and bytes."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from tcuda._base.errors import NcclError

if TYPE_CHECKING:
    import socket

_LENGTHS = struct.Struct("!IQ")
"""The lengths of the header and of the bytes."""

INTERNAL_ERROR, INVALID_USAGE, REMOTE_ERROR = 3, 5, 6


def send(connection: socket.socket, header: dict[str, Any], payload: bytes | memoryview = b"") -> None:
    """Send a message.

    Raises:
        NcclError: The other side is gone, or takes no message for the timeout of the connection.
    """
    text = json.dumps(header).encode()
    send_bytes(connection, _LENGTHS.pack(len(text), len(payload)) + text)
    if payload:
        send_bytes(connection, payload)


def send_bytes(connection: socket.socket, content: bytes | memoryview) -> None:
    """Send bytes without a header.

    Raises:
        NcclError: The other side is gone, or takes no bytes for the timeout of the connection.
    """
    try:
        connection.sendall(content)
    except OSError as error:
        raise NcclError(REMOTE_ERROR, f"The connection to the other ranks failed: {error}.") from error


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytearray]:
    """Receive a message.

    Raises:
        NcclError: The other side is gone, or sends no message for the timeout of the connection, or sends an error.
    """
    head, body = _LENGTHS.unpack(_received(connection, _LENGTHS.size))
    header: dict[str, Any] = json.loads(_received(connection, head))
    payload = _received(connection, body)
    if header.get("status"):
        raise NcclError(header["status"], header["details"])
    return header, payload


def _received(connection: socket.socket, size: int) -> bytearray:
    received = bytearray(size)
    rest = memoryview(received)
    while rest:
        try:
            got = connection.recv_into(rest)
        except TimeoutError as error:
            reason = f"The other ranks have not called the same collective for {connection.gettimeout()} seconds."
            raise NcclError(REMOTE_ERROR, reason) from error
        except OSError as error:
            raise NcclError(REMOTE_ERROR, f"The connection to the other ranks failed: {error}.") from error
        if not got:
            raise NcclError(REMOTE_ERROR, "A rank of the clique is gone.")
        rest = rest[got:]
    return received
