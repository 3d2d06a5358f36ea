"""Leases: the memory of this process that other processes may use, and who keeps it."""

from __future__ import annotations

import itertools
import secrets
import threading
from typing import TYPE_CHECKING, Any, Protocol

from tcuda._process.fork import call_in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Shared(Protocol):
    """Memory, or another object, that is shared.

    Attributes:
        memory: The object that keeps the memory alive, always the same object for the same memory.
    """

    memory: Any

    def descriptors(self, first: int, count: int) -> list[int]:
        """Return new file descriptors of ``count`` pieces of the memory, from the piece ``first`` on."""


class Lease:
    """Memory that was sent.

    Args:
        number: The number of the lease in messages.
        shared: The memory.

    Attributes:
        on_the_way: For each message that no process has received yet, the function to call when it is received.
        holds: The number of arrays that each receiver has.
    """

    __slots__ = ("holds", "number", "on_the_way", "shared")

    def __init__(self, number: int, shared: Shared) -> None:
        self.number = number
        self.shared = shared
        self.on_the_way: dict[int, Callable[[], object]] = {}
        self.holds: dict[Hashable, int] = {}


class Leases:
    """The leases of a process. Any thread may call any method.

    The lock is reentrant, because a garbage collection may begin while a thread holds the lock, and finalizers may send
    arrays. No memory is freed and no function of a caller is called under the lock.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._by_number: dict[int, Lease] = {}
        self._by_memory: dict[int, Lease] = {}
        self._numbers = itertools.count(1)

    def send(self, shared: Shared, when_received: Callable[[], object]) -> tuple[int, int]:
        """Keep ``shared`` until a message is received, and return the numbers of the lease and of the message.

        Args:
            shared: The memory.
            when_received: A function that is called when the message is received for the first time.
        """
        message = secrets.randbits(62)
        with self._lock:
            key = id(shared.memory)
            lease = self._by_memory.get(key)
            if lease is None:
                number = next(self._numbers)
                lease = self._by_number[number] = self._by_memory[key] = Lease(number, shared)
            lease.on_the_way[message] = when_received
            return lease.number, message

    def forward(self, number: int, when_received: Callable[[], object]) -> int | None:
        """Keep the memory of a lease until a message of another process is received, and return the message's number.

        None if the lease has ended.
        """
        message = secrets.randbits(62)
        with self._lock:
            lease = self._by_number.get(number)
            if lease is None:
                return None
            lease.on_the_way[message] = when_received
            return message

    def claim(self, number: int, message: int, holder: Hashable) -> bool:
        """Let ``holder`` hold the memory of a lease once more; return False if the lease has ended.

        Args:
            number: The number of the lease.
            message: The number of the message by which the holder got the memory.
            holder: A receiver.
        """
        with self._lock:
            lease = self._by_number.get(number)
            if lease is None:
                return False
            lease.holds[holder] = lease.holds.get(holder, 0) + 1
            received = lease.on_the_way.pop(message, None)
        if received is not None:
            received()
        return True

    def take_back(self, number: int, message: int) -> Any:
        """Return the memory of a lease whose ``message`` this process has received; None if the lease has ended."""
        with self._lock:
            lease = self._by_number.get(number)
            if lease is None:
                return None
            received = lease.on_the_way.pop(message, None)
            self._end_if_unused(lease)
        if received is not None:
            received()
        return lease.shared.memory

    def release(self, number: int, count: int, holder: Hashable) -> None:
        """Let ``holder`` hold the memory of a lease ``count`` times less."""
        with self._lock:
            lease = self._by_number.get(number)
            if lease is None:
                return
            left = lease.holds.get(holder, 0) - count
            if left > 0:
                lease.holds[holder] = left
            else:
                lease.holds.pop(holder, None)
            self._end_if_unused(lease)
        del lease  # the last reference to the memory may be in the lease, so the memory is freed here

    def holds_any(self, holder: Hashable) -> bool:
        """Return whether ``holder`` holds any memory."""
        with self._lock:
            return any(holder in lease.holds for lease in list(self._by_number.values()))

    def drop(self, holder: Hashable) -> None:
        """End everything that ``holder`` holds."""
        ended = []
        with self._lock:
            for lease in list(self._by_number.values()):
                if lease.holds.pop(holder, None) is not None:
                    self._end_if_unused(lease)
                    ended.append(lease)
        ended.clear()

    def find(self, number: int) -> Shared | None:
        """Return the memory of a lease; None if the lease has ended."""
        with self._lock:
            lease = self._by_number.get(number)
            return None if lease is None else lease.shared

    def all(self) -> list[Shared]:
        """Return what other processes have, or will have when they receive a message."""
        with self._lock:
            return [lease.shared for lease in self._by_number.values()]

    def on_the_way(self) -> int:
        """Return the number of messages that no process has received yet."""
        with self._lock:
            return sum(len(lease.on_the_way) for lease in list(self._by_number.values()))

    def withdraw(self, memory: Any = None) -> int:
        """End the messages that no process has received yet, and return their number.

        Args:
            memory: The memory of the messages; all memory if None.
        """
        ended: list[Lease] = []
        received: list[Callable[[], object]] = []
        with self._lock:
            for lease in list(self._by_number.values()):
                if lease.on_the_way and (memory is None or lease.shared.memory is memory):
                    received += list(lease.on_the_way.values())
                    lease.on_the_way.clear()
                    self._end_if_unused(lease)
                    ended.append(lease)
        for call in received:
            call()
        ended.clear()
        return len(received)

    def count(self) -> int:
        """Return the number of leases."""
        return len(self._by_number)

    def _end_if_unused(self, lease: Lease) -> None:
        if not lease.on_the_way and not lease.holds:
            self._by_number.pop(lease.number, None)
            self._by_memory.pop(id(lease.shared.memory), None)

    def forget(self) -> None:
        """Forget all leases, in a forked child."""
        self._lock = threading.RLock()
        self._by_number.clear()
        self._by_memory.clear()


leases = Leases()
"""The leases of this process."""

call_in_child(leases.forget)
