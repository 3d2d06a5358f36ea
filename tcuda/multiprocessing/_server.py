"""The thread of a sender that answers receivers: it lets them claim and release memory, and gives them descriptors.

The first array that the process sends starts the thread. A receiver has one connection to each sender. When the
receiver ends, even by a signal, Linux closes the connection, and all that the receiver holds is released.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import selectors
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from tcuda._process.credentials import process_of, user_of
from tcuda._process.fork import call_in_child
from tcuda.multiprocessing import _wire
from tcuda.multiprocessing._leases import leases

if TYPE_CHECKING:
    from collections.abc import Callable

_EXIT_TIMEOUT = 5.0
_PAUSE = 0.1
"""The seconds between two attempts to accept a connection in a process without free file descriptors."""

_NOTHING_FREE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_LONGEST_ERROR = 4096


class _Receiver:
    """A process that is connected to this one.

    Args:
        connected: The socket.
        process: A descriptor of the process, which becomes readable when the process has ended; None if Linux gives
            none.

    Attributes:
        unsent: Messages that the socket did not take yet, each with its descriptors, which belong to the message.
        waits: Whether the selector waits until the socket takes the next message.
    """

    def __init__(self, connected: socket.socket, process: int | None) -> None:
        self.connected = connected
        self.process = process
        self.unsent: deque[tuple[list[Any], list[int]]] = deque()
        self.waits = False

    def close(self) -> None:
        """Close the socket, and drop the messages that it did not take."""
        self.connected.close()
        while self.unsent:
            _close(self.unsent.popleft()[1])


class Server:
    """The thread, and the sockets that the thread serves.

    Attributes:
        address: The address at which receivers reach the thread.
    """

    def __init__(self) -> None:
        self.address = _wire.new_address()
        self._selector = selectors.DefaultSelector()
        self._listening = _wire.listen(self.address)
        self._wakes, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._receivers: set[_Receiver] = set()
        self._calls: deque[Callable[[], object]] = deque()
        self._stopping = False
        self._pause_ends: float | None = None
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wakes, selectors.EVENT_READ, self._wake)
        self._thread = threading.Thread(target=self._run, name="tcuda sharing", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Wait until the thread has handled everything that has arrived before the call."""
        done = threading.Event()
        self._calls.append(done.set)
        self._ring()
        while not done.wait(0.1):
            if not self._thread.is_alive():
                return

    def stop(self) -> None:
        """End the thread."""
        self._stopping = True
        self._ring()
        self._thread.join(_EXIT_TIMEOUT)

    def close(self) -> None:
        """Close all descriptors: of a thread that ends, so that no receiver waits for it, and in a forked child."""
        for receiver in self._receivers:
            receiver.close()
            if receiver.process is not None:
                os.close(receiver.process)
        for inherited in (self._listening, self._wakes, self._waker, self._selector):
            inherited.close()

    def _ring(self) -> None:
        with contextlib.suppress(OSError):  # a full socket wakes the thread as well, and a closed one has no thread
            self._waker.send(b"\0")

    def _run(self) -> None:
        try:
            self._serve_all()
        finally:
            self.close()

    def _serve_all(self) -> None:
        while not self._stopping:
            # A call waits for the sockets that were readable before the call, so the calls are taken first.
            calls = [self._calls.popleft() for _ in range(len(self._calls))]
            pause = self._pause_left()
            ready = self._selector.select(0 if calls else pause)
            for key, _ in ready:
                key.data()
            if calls:
                self._drain()
                for call in calls:
                    call()

    def _drain(self) -> None:
        """Handle all messages that have arrived."""
        while ready := [key for key, _ in self._selector.select(0) if key.fileobj is not self._wakes]:
            for key in ready:
                key.data()

    def _wake(self) -> None:
        self._wakes.recv(1 << 12)

    def _accept(self) -> None:
        try:
            connected, _ = self._listening.accept()
        except OSError as error:  # the receiver has gone, or this process has too many open files
            if error.errno in _NOTHING_FREE:
                self._selector.unregister(self._listening)
                self._pause_ends = time.monotonic() + _PAUSE
            return
        if user_of(connected) != os.geteuid():
            connected.close()
            return
        connected.setblocking(False)
        process = _descriptor_of(process_of(connected))
        receiver = _Receiver(connected, process)
        self._receivers.add(receiver)
        self._selector.register(connected, selectors.EVENT_READ, lambda: self._serve(receiver))
        if process is not None:
            self._selector.register(process, selectors.EVENT_READ, lambda: self._end(receiver))

    def _pause_left(self) -> float | None:
        """Return the seconds until this process accepts connections again; None if it accepts them now."""
        if self._pause_ends is None:
            return None
        left = self._pause_ends - time.monotonic()
        if left > 0:
            return left
        self._pause_ends = None
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        return None

    def _serve(self, receiver: _Receiver) -> None:
        """Send what the socket of ``receiver`` did not take before, and answer one message."""
        if receiver.waits:
            self._flush(receiver)
        if receiver.connected.fileno() < 0:  # closed since the selector has seen it
            return
        try:
            message, descriptors = _wire.receive(receiver.connected)
        except BlockingIOError:
            return
        except (EOFError, OSError, ValueError):
            self._hang_up(receiver)
            return
        _close(descriptors)
        request, *asked = message
        try:
            answer, attached = self._answer(receiver, asked)
        except Exception as error:  # the receiver raises the error
            answer, attached = ["failed", str(error)[:_LONGEST_ERROR]], []
        if request:
            self._send(receiver, [request, *answer], attached)
        else:
            _close(attached)

    def _answer(self, receiver: _Receiver, message: list[Any]) -> tuple[list[Any], list[int]]:
        match message:
            case ["claim", int(lease), int(number), int(count)]:
                if not leases.claim(lease, number, receiver):
                    return [False], []
                try:
                    return [True], self._descriptors(lease, 0, count)
                except BaseException:
                    leases.release(lease, 1, receiver)
                    raise
            case ["forward", int(lease)]:
                tell = _Notice(self, receiver)
                forwarded = leases.forward(lease, tell)
                tell.number = forwarded or 0
                return [forwarded], []
            case ["descriptors", int(lease), int(first), int(count)]:
                return [True], self._descriptors(lease, first, count)
            case ["release", [*released]]:
                for lease, count in released:
                    leases.release(lease, count, receiver)
                return [], []
        raise ValueError(f"unknown request {message!r}: the two processes have different versions of tcuda")

    def _descriptors(self, lease: int, first: int, count: int) -> list[int]:
        """Return descriptors of the memory of ``lease``, as many of ``count`` as fit into one message."""
        shared = leases.find(lease) if count else None
        return [] if shared is None else shared.descriptors(first, min(count, _wire.MOST_DESCRIPTORS))

    def _send(self, receiver: _Receiver, message: list[Any], descriptors: list[int]) -> None:
        """Send a message, now or when the socket takes it; the descriptors are closed then."""
        receiver.unsent.append((message, descriptors))
        if not receiver.waits:
            self._flush(receiver)

    def _flush(self, receiver: _Receiver) -> None:
        """Send the messages that the socket of ``receiver`` takes."""
        unsent = receiver.unsent
        try:
            while unsent:
                _wire.send(receiver.connected, *unsent[0])
                _close(unsent.popleft()[1])
        except BlockingIOError:
            pass
        except (OSError, ValueError):
            self._hang_up(receiver)
            return
        if receiver.waits != bool(unsent):
            receiver.waits = bool(unsent)
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if unsent else 0)
            self._selector.modify(receiver.connected, wanted, lambda: self._serve(receiver))

    def notify(self, receiver: _Receiver, number: int) -> None:
        """Tell ``receiver`` that a message that it has sent on is received; called by any thread."""

        def tell() -> None:
            if receiver in self._receivers and receiver.connected.fileno() >= 0:
                self._send(receiver, [0, number], [])

        self._calls.append(tell)
        self._ring()

    def _hang_up(self, receiver: _Receiver) -> None:
        """End the connection of ``receiver``.

        The kernels of a process that was killed may still run when Linux closes the connection. So the memory stays
        until the process has ended.
        """
        if receiver.process is None or not leases.holds_any(receiver):
            self._end(receiver)
        elif receiver.connected.fileno() >= 0:
            self._selector.unregister(receiver.connected)
            receiver.close()

    def _end(self, receiver: _Receiver) -> None:
        if receiver not in self._receivers:
            return
        self._receivers.discard(receiver)
        if receiver.connected.fileno() >= 0:
            self._selector.unregister(receiver.connected)
            receiver.close()
        if receiver.process is not None:
            self._selector.unregister(receiver.process)
            os.close(receiver.process)
        leases.drop(receiver)


class _Notice:
    """Tells a receiver that a message that the receiver has sent on is received."""

    def __init__(self, server: Server, receiver: _Receiver) -> None:
        self.number = 0
        self._server = server
        self._receiver = receiver

    def __call__(self) -> None:
        self._server.notify(self._receiver, self.number)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _descriptor_of(process: int) -> int | None:
    """Return a descriptor of ``process``; None if Linux refuses."""
    try:
        return os.pidfd_open(process) if process > 0 else None
    except OSError:  # the process has ended, or the kernel is older than 5.3
        return None


_server: Server | None = None
_lock = threading.Lock()


def server() -> Server:
    """Return the server of this process; the first call starts the thread."""
    global _server
    if _server is None:
        with _lock:
            if _server is None:
                _server = Server()
                atexit.register(_server.stop)
    return _server


def server_if_any() -> Server | None:
    """Return the server of this process; None if the process has sent nothing."""
    return _server


def _forget_in_child() -> None:
    global _server, _lock
    _lock = threading.Lock()
    if _server is not None:
        atexit.unregister(_server.stop)
        _server.close()
        _server = None


call_in_child(_forget_in_child)
