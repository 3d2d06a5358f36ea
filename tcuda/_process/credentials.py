"""The process at the other end of a socket of the machine, as Linux knows it."""

from __future__ import annotations

import socket
import struct

_PEER = struct.Struct("iII")


def user_of(connected: socket.socket) -> int:
    """Return the number of the user of the process at the other end."""
    user: int = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[1]
    return user


def process_of(connected: socket.socket) -> int:
    """Return the number of the process at the other end; 0 if this process cannot see the other one."""
    number: int = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[0]
    return number
