"""Short messages between two processes of one user on one machine, each with file descriptors."""

from __future__ import annotations

import array
import errno
import json
import os
import secrets
import socket
from typing import Any, NamedTuple

from tcuda._process.credentials import user_of

LARGEST = 1 << 16
"""The number of bytes of the largest message."""

MOST_DESCRIPTORS = 128
"""The number of file descriptors in one message; Linux takes 253."""

_ROOM = socket.CMSG_SPACE(MOST_DESCRIPTORS * array.array("i").itemsize)


class Address(NamedTuple):
    """The address of a process that sends arrays.

    Attributes:
        name: The name of the socket, which no other process has or will have.
        pid: The number of the process, for messages to people.
    """

    name: str
    pid: int


def new_address() -> Address:
    """Return an address for this process."""
    pid = os.getpid()
    return Address(f"tcuda-{pid}-{secrets.token_hex(16)}", pid)


def _path(address: Address) -> bytes:
    # The name is in the abstract namespace of Linux: no file is left behind when the process is killed.
    return b"\0" + address.name.encode("ascii")


def listen(address: Address) -> socket.socket:
    """Return a socket that accepts connections to ``address``."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listening.bind(_path(address))
        listening.listen(1024)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


def connect(address: Address) -> socket.socket:
    """Return a socket that is connected to ``address``.

    Raises:
        ConnectionRefusedError: The process has ended.
        PermissionError: The process belongs to another user.
    """
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connected.connect(_path(address))
        if user_of(connected) != os.geteuid():
            raise PermissionError(errno.EPERM, "the process belongs to another user")
    except BaseException:
        connected.close()
        raise
    return connected


def send(connected: socket.socket, message: list[Any], descriptors: list[int] | None = None) -> None:
    """Send ``message``, whose members JSON can write, with ``descriptors``, which stay open here.

    Raises:
        ValueError: The message is too large: the other end would get a part of it.
    """
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > LARGEST:
        raise ValueError(f"a message has {len(data)} bytes; the most are {LARGEST}")
    if descriptors:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        connected.sendmsg([data], [rights], socket.MSG_NOSIGNAL)
    else:
        connected.send(data, socket.MSG_NOSIGNAL)


def receive(connected: socket.socket, *, wait: bool = True) -> tuple[list[Any], list[int]]:
    """Return the next message and its descriptors, which belong to the caller.

    Args:
        connected: The socket.
        wait: Wait for a message.

    Raises:
        BlockingIOError: There is no message, and the call does not wait.
        EOFError: The other end is closed.
        ValueError: The message is not one of this module.
    """
    try:
        # Not socket.recv_fds(), which ignores the flags.
        data, attached, _, _ = connected.recvmsg(LARGEST, _ROOM, 0 if wait else socket.MSG_DONTWAIT)
    except ConnectionResetError as error:
        raise EOFError from error
    if not data:
        raise EOFError
    received = array.array("i")
    for _, _, rights in attached:  # nothing else is attached to messages
        received.frombytes(rights[: len(rights) - len(rights) % received.itemsize])
    descriptors = received.tolist()
    try:
        message = json.loads(data)
        if not isinstance(message, list) or not message:
            raise ValueError(f"A message is a list; got {data[:80]!r}.")
    except (ValueError, RecursionError) as error:
        for descriptor in descriptors:
            os.close(descriptor)
        raise ValueError(str(error)) from error
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return message, descriptors
