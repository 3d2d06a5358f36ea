"""System calls that use watched memory, and handlers of signals that are installed while memory is watched."""

from __future__ import annotations

import errno
import mmap
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.core import for_tests
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import RunPython

pytestmark = pytest.mark.skipif(not for_tests.watches_pages(), reason="this machine does not tell reads from writes")

PAGE = mmap.PAGESIZE
SIZE = 4 * PAGE


class Buffer:
    """Memory whose last three pages can be watched."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, SIZE)
        self.array = np.frombuffer(self.memory, np.uint8)
        self.view = memoryview(self.memory)
        self.seen: list[tuple[int, bool]] = []

    def watch(self, reads: bool = True) -> None:
        begin = self.array.ctypes.data
        for_tests.watch_pages([(begin + PAGE, begin + SIZE, reads)], self._see)

    def _see(self, address: int, write: bool) -> None:
        self.seen.append((address - self.array.ctypes.data, write))


@pytest.fixture
def buffer() -> Iterator[Buffer]:
    _core.notice_system_calls()
    yield Buffer()
    for_tests.end_watch_of_pages()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"7" * SIZE)
    return path


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    first, second = socket.socketpair()
    with first, second:
        yield first, second


def with_descriptor(path: Path, flags: int, call: Callable[[int], int]) -> int:
    descriptor = os.open(path, flags)
    try:
        return call(descriptor)
    finally:
        os.close(descriptor)


def filled(path: Path, buffer: Buffer, buffering: int) -> int:
    with path.open("rb", buffering=buffering) as file:
        return int(file.readinto(buffer.view))  # type: ignore[attr-defined]


READS: dict[str, Callable[[Path, Buffer], int]] = {
    "readinto": lambda path, buffer: filled(path, buffer, 0),
    "readinto of a buffered file": lambda path, buffer: filled(path, buffer, -1),
    "os.readv": lambda path, buffer: with_descriptor(
        path, os.O_RDONLY, lambda file: os.readv(file, [buffer.view[:100], buffer.view[100:]])
    ),
    "os.preadv": lambda path, buffer: with_descriptor(
        path, os.O_RDONLY, lambda file: os.preadv(file, [buffer.view], 0)
    ),
}
WRITES: dict[str, Callable[[Path, Buffer], int]] = {
    "os.write": lambda path, buffer: with_descriptor(path, os.O_WRONLY, lambda file: os.write(file, buffer.view)),
    "os.pwrite": lambda path, buffer: with_descriptor(path, os.O_WRONLY, lambda file: os.pwrite(file, buffer.view, 0)),
    "os.writev": lambda path, buffer: with_descriptor(
        path, os.O_WRONLY, lambda file: os.writev(file, [buffer.view[:100], buffer.view[100:]])
    ),
    "write_bytes": lambda path, buffer: path.write_bytes(buffer.view),
    "tofile": lambda path, buffer: buffer.array.tofile(path) or SIZE,
}


@pytest.mark.parametrize("name", READS)
def test_a_call_that_fills_the_memory_is_a_write(name: str, buffer: Buffer, path: Path) -> None:
    buffer.watch()
    assert READS[name](path, buffer) == SIZE
    assert buffer.seen == [(PAGE, True)]
    assert bytes(buffer.view) == b"7" * SIZE


@pytest.mark.parametrize("name", WRITES)
def test_a_call_that_takes_the_memory_is_a_read(name: str, buffer: Buffer, path: Path) -> None:
    buffer.array[:] = 8
    buffer.watch(reads=False)
    assert WRITES[name](path, buffer) == SIZE
    assert buffer.seen == []
    buffer.watch()
    assert WRITES[name](path, buffer) == SIZE
    assert buffer.seen == [(PAGE, False)]
    assert path.read_bytes() == bytes([8]) * SIZE


def test_sockets_send_and_receive(buffer: Buffer, sockets: tuple[socket.socket, socket.socket]) -> None:
    first, second = sockets
    part = buffer.view[PAGE + 5 : PAGE + 100]
    calls: list[tuple[Callable[[], Any], bool]] = [
        (lambda: first.send(part), False),
        (lambda: second.recv_into(part), True),
        (lambda: first.sendmsg([part]), False),
        (lambda: second.recvmsg_into([part])[0], True),
        (lambda: first.sendall(part) or len(part), False),
        (lambda: second.recvfrom_into(part)[0], True),
    ]
    for call, write in calls:
        buffer.watch()
        assert call() == len(part)
        assert buffer.seen.pop() == (PAGE + 5, write)
    assert not buffer.seen


def test_what_a_call_leaves_unchanged_is_no_write(
    buffer: Buffer, path: Path, sockets: tuple[socket.socket, socket.socket]
) -> None:
    path.write_bytes(b"7" * PAGE)  # ends where the watched pages begin
    buffer.watch()
    with path.open("rb", buffering=0) as file:
        assert file.readinto(buffer.view) == PAGE
        assert file.readinto(buffer.view[PAGE:]) == 0
    first, second = sockets
    second.setblocking(False)
    with pytest.raises(BlockingIOError):
        second.recv_into(buffer.view)
    first.send(b"7" * 10)
    buffer.watch()
    assert second.recv_into(buffer.view) == 10
    assert buffer.seen == []


def test_a_failed_call_raises_its_own_error(buffer: Buffer, path: Path) -> None:
    for flags, call in ((os.O_WRONLY, os.readv), (os.O_RDONLY, os.writev)):
        buffer.watch()
        with pytest.raises(OSError, match=f"Errno {errno.EBADF}"):
            with_descriptor(path, flags, lambda file, call=call: call(file, [buffer.view]))


def test_memory_that_is_watched_during_the_call_is_opened(
    buffer: Buffer, sockets: tuple[socket.socket, socket.socket]
) -> None:
    first, second = sockets
    got: list[int] = []
    receiving = threading.Thread(target=lambda: got.append(second.recv_into(buffer.view[PAGE:])))
    receiving.start()
    state = Path(f"/proc/self/task/{receiving.native_id}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "S":  # until the thread sleeps in the system
        pass
    buffer.watch()
    first.send(b"7" * 10)
    receiving.join()
    assert got == [10]
    assert buffer.seen == [(PAGE, True)]


def test_a_pause_notices_no_call(buffer: Buffer, path: Path) -> None:
    buffer.watch()
    with _core.PauseOfWatch():
        assert path.write_bytes(buffer.view) == SIZE
    assert buffer.seen == []


def test_a_process_can_be_started(buffer: Buffer) -> None:
    buffer.watch()
    done = subprocess.run([sys.executable, "-c", "print(input())"], input=b"yes", capture_output=True, check=True)
    assert done.stdout == b"yes\n"
    assert buffer.seen == []


def test_a_module_that_is_loaded_later_is_noticed(run_python: RunPython) -> None:
    done = run_python(
        """
import mmap, sys
from tcuda import _core
from tcuda._core import for_tests
assert "_socket" not in sys.modules
_core.notice_system_calls()
import _socket, ctypes
_core.notice_system_calls()
pages = mmap.mmap(-1, mmap.PAGESIZE)
begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
seen = []
for_tests.watch_pages([(begin, begin + len(pages), True)], lambda address, write: seen.append(write))
first, second = _socket.socketpair()
print(first.send(b"12"), second.recv_into(pages), seen)
"""
    )
    assert (done.returncode, done.stdout) == (0, "2 2 [True]\n"), done.stderr


HANDLERS = {
    "the default": ("", "signal.signal(signal.SIGSEGV, signal.SIG_DFL)"),
    "no handler": ("", "signal.signal(signal.SIGSEGV, signal.SIG_IGN)"),
    "a function": ("", "signal.signal(signal.SIGSEGV, called)"),
    "the function before": ("before = signal.signal(signal.SIGSEGV, called)", "signal.signal(signal.SIGSEGV, before)"),
    "the begin of faulthandler": ("", "faulthandler.enable()"),
    "the end of faulthandler": ("faulthandler.enable()", "faulthandler.disable()"),
}


@pytest.mark.parametrize("what", HANDLERS)
def test_the_handler_of_the_watch_stays_above_later_handlers(what: str, run_python: RunPython) -> None:
    before, later = HANDLERS[what]
    done = run_python(
        f"""
import ctypes, faulthandler, mmap, signal, time
from tcuda import _core
from tcuda._core import for_tests
_core.notice_system_calls()
def called(*_):
    raise AssertionError("the program gets the signal")
{before}
pages = mmap.mmap(-1, 4 * mmap.PAGESIZE)
begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
seen = []
for place in range(5):
    for_tests.watch_pages([(begin, begin + len(pages), False)], lambda address, write: seen.append(address - begin))
    {later}
    pages[place] = 1
print(seen, flush=True)
for_tests.watch_pages([(begin, begin + len(pages), False)], print)
signal.alarm(30)  # ends an endless loop
ctypes.string_at(8)
"""
    )
    assert done.stdout == "[0, 1, 2, 3, 4]\n", done.stderr
    assert done.returncode == -11
    assert done.stderr.count("Segmentation fault") == (what == "the begin of faulthandler")
