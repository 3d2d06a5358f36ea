"""The requests of a receiver, and the leases of an owner, without any device."""

from __future__ import annotations

import os
import types
from typing import TYPE_CHECKING, Any

import pytest

from support.receivers import open_files
from tcuda.multiprocessing import _connections, _wire
from tcuda.multiprocessing._leases import leases
from tcuda.multiprocessing._messages import _require_end_of
from tcuda.multiprocessing._server import server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fixture_types import OutputOf
    from tcuda.multiprocessing._connections import Connection


class Files:
    """Memory whose pieces are numbered files."""

    def __init__(self) -> None:
        self.memory = object()

    def descriptors(self, first: int, count: int) -> list[int]:
        """Return files whose contents are their numbers."""
        found = []
        for number in range(first, first + count):
            descriptor = os.memfd_create("test")
            os.pwrite(descriptor, str(number).encode(), 0)
            found.append(descriptor)
        return found


@pytest.fixture
def connection() -> Iterator[Connection]:
    """A connection of this process to itself."""
    made = _connections.connection_to(server().address)
    yield made
    assert made.close_if_unused()


@pytest.fixture
def calls() -> list[str]:
    """The calls for messages that are received."""
    return []


def test_a_lease_lives_while_it_is_held(connection: Connection, calls: list[str]) -> None:
    lease, message = leases.send(Files(), lambda: calls.append("received"))
    assert calls == []
    connection.claim(lease, message)
    assert calls == ["received"]
    connection.claim(lease, message)  # a second load of the message
    connection.release({lease: 1})
    server().settle()
    assert leases.find(lease) is not None
    connection.release({lease: 1})
    server().settle()
    assert leases.find(lease) is None
    with pytest.raises(RuntimeError, match="The array is gone"):
        connection.claim(lease, message)
    assert connection.held == 0


def test_all_arrays_in_the_same_memory_have_one_lease(calls: list[str]) -> None:
    files = Files()
    first, second = leases.send(files, calls.clear), leases.send(files, calls.clear)
    assert first[0] == second[0]
    assert leases.take_back(*first) is files.memory
    assert leases.take_back(*second) is files.memory
    assert leases.take_back(*second) is None


def test_a_message_that_is_sent_on_keeps_the_memory(connection: Connection, calls: list[str]) -> None:
    lease, message = leases.send(Files(), calls.clear)
    connection.claim(lease, message)
    onward = connection.forward(lease, lambda: calls.append("received"))
    connection.release({lease: 1})
    server().settle()
    assert leases.find(lease) is not None
    assert leases.take_back(lease, onward) is not None
    server().settle()
    assert leases.find(lease) is None
    assert calls == []
    connection.close_if_unused()  # reads what the owner has sent
    assert calls == ["received"]


def test_more_descriptors_than_fit_into_one_message(connection: Connection) -> None:
    lease, message = leases.send(Files(), lambda: None)
    connection.claim(lease, message)
    count = 2 * _wire.MOST_DESCRIPTORS + 3
    received = connection.descriptors(lease, count)
    try:
        assert [int(os.pread(descriptor, 10, 0)) for descriptor in received] == list(range(count))
        assert not any(os.get_inheritable(descriptor) for descriptor in received)
    finally:
        for descriptor in received:
            os.close(descriptor)
        connection.release({lease: 1})


def test_a_claim_brings_the_first_descriptors(connection: Connection) -> None:
    lease, message = leases.send(Files(), lambda: None)
    count = _wire.MOST_DESCRIPTORS + 1
    first = connection.claim(lease, message, count)
    assert 0 < len(first) < count
    received = connection.descriptors(lease, count, first)
    try:
        assert [int(os.pread(descriptor, 10, 0)) for descriptor in received] == list(range(count))
    finally:
        for descriptor in received:
            os.close(descriptor)
        connection.release({lease: 1})


def test_a_claim_whose_descriptors_fail_holds_nothing(connection: Connection) -> None:
    class Broken(Files):
        def descriptors(self, first: int, count: int) -> list[int]:
            raise OSError("no files left")

    lease, message = leases.send(Broken(), lambda: None)
    with pytest.raises(RuntimeError, match="cannot share the memory: no files left"):
        connection.claim(lease, message, 1)
    assert connection.held == 0
    assert leases.find(lease) is None


def test_a_failure_of_the_owner_is_raised_by_the_receiver(connection: Connection) -> None:
    class Broken(Files):
        def descriptors(self, first: int, count: int) -> list[int]:
            raise OSError("no files left")

    lease, message = leases.send(Broken(), lambda: None)
    connection.claim(lease, message)
    before = open_files()  # after the answer, because the server opens files for a new connection
    with pytest.raises(RuntimeError, match=f"process {os.getpid()} cannot share the memory: no files left"):
        connection.descriptors(lease, 1)
    connection.release({lease: 1})
    assert open_files() == before


def test_an_interrupted_claim_holds_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, calls: list[str]
) -> None:
    lease, message = leases.send(Files(), calls.clear)
    other, later = leases.send(Files(), calls.clear)

    def interrupted(connected: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_connections, "_wire", types.SimpleNamespace(send=_wire.send, receive=interrupted))
        with pytest.raises(KeyboardInterrupt):
            connection.claim(lease, message)
    connection.claim(other, later)  # skips the answer to the interrupted claim, and releases it
    server().settle()
    assert leases.find(lease) is None
    assert leases.find(other) is not None
    connection.release({other: 1})


def test_an_answer_that_is_too_long_ends_the_connection() -> None:
    connected = _wire.connect(server().address)
    _wire.send(connected, ["r" * 65_500, "unknown"])
    with pytest.raises(EOFError):
        _wire.receive(connected)
    connected.close()
    server().settle()


def test_a_request_in_the_middle_of_a_request(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, message = leases.send(Files(), lambda: None)
    connection.claim(lease, message)
    found: list[int] = []

    def with_finalizer(*args: Any, **options: Any) -> Any:
        if not found:
            found.append(0)
            found[0] = connection.forward(lease, lambda: None)  # as a finalizer may do, which sends an array on
        return _wire.receive(*args, **options)

    monkeypatch.setattr(_connections, "_wire", types.SimpleNamespace(send=_wire.send, receive=with_finalizer))
    connection.claim(lease, 0)
    assert leases.take_back(lease, found[0]) is not None
    connection.release({lease: 2})
    server().settle()
    assert leases.find(lease) is None


def test_a_connection_that_ends_holds_nothing(calls: list[str]) -> None:
    lease, message = leases.send(Files(), calls.clear)
    connected = _wire.connect(server().address)
    _wire.send(connected, [1, "claim", lease, message, 0])
    assert _wire.receive(connected)[0] == [1, True]
    _wire.send(connected, [0, "release", [[lease, 1]]])
    connected.close()
    server().settle()
    assert leases.find(lease) is None


@pytest.mark.parametrize("nonsense", [b"nonsense", b"[]", b"[" * 60_000], ids=["text", "empty", "deep"])
def test_nonsense_ends_the_connection(nonsense: bytes) -> None:
    connected = _wire.connect(server().address)
    connected.send(nonsense)
    with pytest.raises(EOFError):
        _wire.receive(connected)
    connected.close()


def test_a_process_that_does_not_exist() -> None:
    absent = _wire.Address("tcuda-1-none", 1)
    with pytest.raises(RuntimeError, match="the process 1, whose memory it is in, has ended"):
        _connections.connection_to(absent)


def test_the_end_of_a_process_is_seen_although_the_connection_is_old() -> None:
    address = _wire.new_address()
    listening = _wire.listen(address)
    _connections.connection_to(address)
    with pytest.raises(RuntimeError, match="cannot be opened: no event"):
        _require_end_of(address, "no event")
    listening.close()  # as the end of the process does
    _require_end_of(address, "no event")
    assert not [known for known in _connections.connections() if known.owner == address]


MANY_NOTICES = """
import threading
from tcuda.multiprocessing._connections import connection_to
from tcuda.multiprocessing._leases import leases
from tcuda.multiprocessing._server import server

class Nothing:
    def __init__(self):
        self.memory = object()

    def descriptors(self, first, count):
        return []

def work():
    connection = connection_to(server().address)
    lease, message = leases.send(Nothing(), list)
    connection.claim(lease, message)
    received = []
    sent_on = [connection.forward(lease, lambda number=number: received.append(number)) for number in range(3000)]
    for message in sent_on:
        leases.take_back(lease, message)
    server().settle()
    connection.claim(*leases.send(Nothing(), list))
    print(received == list(range(3000)))

thread = threading.Thread(target=work, daemon=True)
thread.start()
thread.join(30)
"""


def test_a_receiver_that_reads_no_notices_gets_its_next_answer(output_of: OutputOf) -> None:
    assert output_of(MANY_NOTICES) == "True"


def test_a_receiver_gets_the_descriptors_of_an_answer_that_waits(connection: Connection) -> None:
    lease, message = leases.send(Files(), lambda: None)
    connection.claim(lease, message)
    for number in [connection.forward(lease, lambda: None) for _ in range(1000)]:
        leases.take_back(lease, number)  # the notices fill the socket
    server().settle()
    received = connection.descriptors(lease, 5)
    assert [int(os.pread(descriptor, 10, 0)) for descriptor in received] == list(range(5))
    for descriptor in received:
        os.close(descriptor)
    connection.release({lease: 1})


def test_many_leases_are_released_at_once(connection: Connection) -> None:
    server().settle()
    before = leases.count()
    held = []
    for _ in range(8000):  # the numbers of all of them do not fit into one message
        lease, message = leases.send(Files(), lambda: None)
        connection.claim(lease, message)
        held.append(lease)
    connection.release(dict.fromkeys(held, 1))
    server().settle()
    assert leases.count() == before


def test_a_message_that_is_too_long_is_refused_by_the_sender() -> None:
    connected = _wire.connect(server().address)
    with pytest.raises(ValueError, match="a message has 70012 bytes; the most are 65536"):
        _wire.send(connected, [1, "claim", "x" * 69_998])
    connected.close()


def test_a_claim_while_another_thread_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    lease, message = leases.send(Files(), lambda: None)
    real = _connections.connection_to
    closed = []

    def found_and_closed(owner: _wire.Address) -> Connection:
        connection = real(owner)
        if not closed:
            closed.append(connection.close_if_unused())
        return connection

    monkeypatch.setattr(_connections, "connection_to", found_and_closed)
    connection, _ = _connections.claim(server().address, lease, message)
    assert closed == [True]
    connection.release({lease: 1})
    assert connection.close_if_unused()


FULL_TABLE = """
import resource, socket, threading, time
from tcuda.multiprocessing import _wire
from tcuda.multiprocessing._leases import leases
from tcuda.multiprocessing._server import Server, server

times, third = [], threading.Event()
accept = Server._accept

def counted(self):
    times.append(time.monotonic())
    if len(times) == 3:
        third.set()
    accept(self)

Server._accept = counted

class Nothing:
    def __init__(self):
        self.memory = object()

lease, message = leases.send(Nothing(), list)
address = server().address
server().settle()
connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (connected.fileno() + 1, hard))
connected.connect(b"\\0" + address.name.encode())
assert third.wait(30)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
_wire.send(connected, [1, "claim", lease, message, 0])
print(times[2] - times[0] > 0.1, _wire.receive(connected)[0])
"""


def test_a_process_without_free_descriptors_tries_to_accept_now_and_then(output_of: OutputOf) -> None:
    assert output_of(FULL_TABLE) == "True [1, True]"
