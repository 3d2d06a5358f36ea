"""The connections of a receiver, one to each process whose memory the receiver holds."""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING, Any

from tcuda._process.fork import call_in_child
from tcuda.multiprocessing import _wire

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tcuda.multiprocessing._wire import Address

_NO_WISH = "descriptors", 0, 0, 0
"""A request that asks for nothing, and is answered."""

_MOST_LEASES = _wire.LARGEST // 64
"""The number of leases in one message: a lease and its count have at most 64 digits and signs."""


class Connection:
    """The connection to one owner of memory. Any thread may call any method.

    Args:
        owner: The address of the owner.
        connected: The socket.

    Attributes:
        owner: The address of the owner.
        held: The number of arrays in the memory of the owner.
        when_received: For each message that this process has sent on, the function to call when it is received.
        ended: Whether the owner has ended.
    """

    def __init__(self, owner: Address, connected: socket.socket) -> None:
        self.owner = owner
        self.held = 0
        self.when_received: dict[int, Callable[[], object]] = {}
        self.ended = False
        self._connected = connected
        self._lock = threading.RLock()
        self._requests = itertools.count(1)
        self._answers: dict[int, tuple[list[Any], list[int]] | None] = {}  # of the requests that calls wait for
        self._claims: dict[int, int] = {}  # the leases of the claims that are not answered yet, by request

    def claim(self, lease: int, message: int, count: int = 0) -> list[int]:
        """Hold the memory of ``lease``, and return the descriptors of its first pieces, which belong to the caller.

        Args:
            lease: The number of the lease.
            message: The number of the message about the memory.
            count: The number of descriptors to return. The owner may give fewer.

        Raises:
            RuntimeError: The owner has ended, or has freed the memory, or cannot give a descriptor.
        """
        with self._lock:
            (claimed,), found = self._request("claim", lease, message, count)
            if claimed:
                self.held += 1
                return found
        raise RuntimeError(
            f"The array is gone: the process {self.owner.pid} has freed its memory, because all arrays that were "
            "received from this message are gone, or because the sender has withdrawn the message. Load each message "
            "once, while the sender runs."
        )

    def forward(self, lease: int, when_received: Callable[[], object]) -> int:
        """Announce a message about memory that this process holds, and return the number of the message.

        Args:
            lease: The number of the lease.
            when_received: A function that is called after the message is received, or the owner has ended.

        Raises:
            RuntimeError: The owner has ended.
        """
        with self._lock:
            (message,), _ = self._request("forward", lease)
            if message is None:
                raise RuntimeError(f"The process {self.owner.pid} has freed the memory of the array.")
            self.when_received[message] = when_received
            return int(message)

    def descriptors(self, lease: int, count: int, found: list[int] | None = None) -> list[int]:
        """Return ``count`` descriptors of the memory of ``lease``, which belong to the caller.

        Args:
            lease: The number of the lease.
            count: The number of descriptors.
            found: The first descriptors, if the caller has them already. A failure closes them.
        """
        found = [] if found is None else found
        try:
            while len(found) < count:
                with self._lock:
                    _, more = self._request("descriptors", lease, len(found), count - len(found))
                if not more:
                    raise RuntimeError(
                        f"The process {self.owner.pid} sent {len(found)} descriptors of its memory instead of {count}."
                    )
                found += more
        except BaseException:
            for descriptor in found:
                os.close(descriptor)
            raise
        return found

    def release(self, leases: dict[int, int]) -> None:
        """Hold the memory of each lease that many times less; the call does not wait."""
        left = iter(leases.items())
        with self._lock:
            self.held -= sum(leases.values())
            try:
                while not self.ended and (released := list(itertools.islice(left, _MOST_LEASES))):
                    _wire.send(self._connected, [0, "release", released])
            except OSError:
                self._end()

    def has_ended(self) -> bool:
        """Return whether the owner has ended now."""
        with self._lock:
            self._read_notices()
            return self.ended

    def close_if_unused(self) -> bool:
        """Close the connection if this process holds no memory of the owner; return whether it is closed."""
        with self._lock:
            self._read_notices()
            if self.held == 0 and not self.when_received:
                self._end()
            return self.ended

    def close_in_child(self) -> None:
        """Close the socket that a forked child has inherited."""
        self._connected.close()

    def _request(self, *message: Any) -> tuple[list[Any], list[int]]:
        """Send a request, and return the answer with its descriptors.

        A finalizer may make a request in the middle of another request of its thread, and so read the answer to it.
        """
        if self.ended:
            raise ended(self.owner)
        number = next(self._requests)
        self._answers[number] = None
        if message[0] == "claim":
            self._claims[number] = message[1]
        try:
            _wire.send(self._connected, [number, *message])
            while (found := self._answers[number]) is None:
                self._read()
            if any(answer for other, answer in self._answers.items() if other != number):
                # Another request may have been interrupted by this one, and may wait for an answer that was read here.
                _wire.send(self._connected, [next(self._requests), *_NO_WISH])
        except (OSError, EOFError) as error:
            self._end()
            raise ended(self.owner) from error
        finally:
            del self._answers[number]
        answer, descriptors = found
        self._claims.pop(number, None)
        if answer[0] == "failed":
            raise RuntimeError(f"The process {self.owner.pid} cannot share the memory: {answer[1]}")
        return answer, descriptors

    def _read_notices(self) -> None:
        """Read what the owner has sent without being asked."""
        try:
            while not self.ended:
                self._read(wait=False)
        except BlockingIOError:
            pass
        except (OSError, EOFError):
            self._end()

    def _read(self, *, wait: bool = True) -> None:
        """Read the next message of the owner."""
        (request, *answer), descriptors = _wire.receive(self._connected, wait=wait)
        if request in self._answers:
            self._answers[request] = answer, descriptors
        else:
            self._note(request, answer, descriptors)

    def _note(self, request: int, answer: list[Any], descriptors: list[int]) -> None:
        """Handle a notice of the owner, or the answer to a request that an exception such as Ctrl-C has ended."""
        for descriptor in descriptors:
            os.close(descriptor)
        lease = self._claims.pop(request, None)
        if request == 0:
            self._call(answer[0])
        elif lease is not None and answer[0] is True:
            _wire.send(self._connected, [0, "release", [[lease, 1]]])

    def _call(self, message: int) -> None:
        when_received = self.when_received.pop(message, None)
        if when_received is not None:
            when_received()

    def _end(self) -> None:
        self.ended = True
        self._connected.close()
        with _lock:
            if _connections.get(self.owner) is self:
                del _connections[self.owner]
        waiting, self.when_received = self.when_received, {}
        for when_received in waiting.values():
            when_received()


_connections: dict[Address, Connection] = {}
_lock = threading.RLock()


def connection_to(owner: Address) -> Connection:
    """Return the connection to ``owner``; the first call connects.

    Raises:
        RuntimeError: The process has ended, belongs to another user, or cannot be seen from this process.
    """
    known = _connections.get(owner)
    if known is not None:
        return known
    with _lock:
        known = _connections.get(owner)
        if known is None:
            known = _connections[owner] = Connection(owner, _connect(owner))
        return known


def claim(owner: Address, lease: int, message: int, count: int = 0) -> tuple[Connection, list[int]]:
    """Do :meth:`Connection.claim` on the connection to ``owner``, and return the connection and the descriptors.

    Raises:
        RuntimeError: The process has ended, belongs to another user, cannot be seen from this process, has freed the
            memory, or cannot give a descriptor.
    """
    while True:
        connection = connection_to(owner)
        with connection._lock:
            if not connection.ended:  # another thread may have closed the connection, which was not used
                return connection, connection.claim(lease, message, count)


def _connect(owner: Address) -> socket.socket:
    try:
        return _wire.connect(owner)
    except ConnectionRefusedError as error:
        raise ended(owner) from error
    except PermissionError as error:
        raise RuntimeError(
            f"The array was sent by the process {owner.pid} of another user. Arrays can be shared among the processes "
            "of one user only; copy the elements with .get() instead."
        ) from error


def ended(owner: Address) -> RuntimeError:
    """Return the error for an owner that has ended."""
    return RuntimeError(
        f"The array is gone: the process {owner.pid}, whose memory it is in, has ended, or runs in another container "
        "with a network of its own. The sender must run until the array is received."
    )


def connections() -> list[Connection]:
    """Return all connections of this process."""
    with _lock:
        return list(_connections.values())


def _forget_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for connection in _connections.values():
        connection.close_in_child()
    _connections.clear()


call_in_child(_forget_in_child)
