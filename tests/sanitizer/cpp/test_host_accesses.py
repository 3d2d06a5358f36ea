"""Accesses of the host to watched memory."""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.core import for_tests
from support.threads import in_threads
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.fixture_types import RunPython

pytestmark = pytest.mark.skipif(not for_tests.watches_pages(), reason="this machine does not tell reads from writes")

PAGE = os.sysconf("SC_PAGESIZE")


class Seen:
    """The accesses that were noticed: offset from the array's begin, whether it is a write, and the line."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.accesses: list[tuple[int, bool]] = []
        self.lines: list[str | None] = []

    def __call__(self, address: int, write: bool) -> None:
        self.accesses.append((address - self.array.ctypes.data, write))
        here = [frame for frame in traceback.extract_stack() if frame.filename == __file__]
        self.lines.append(here[-2].line)


def bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    return array.ctypes.data, array.ctypes.data + array.nbytes


@pytest.fixture
def array() -> Iterator[np.ndarray[Any, Any]]:
    """Four whole pages of bytes, and a part of a page before and after them."""
    memory = np.zeros(7 * PAGE, np.uint8)
    begin = -memory.ctypes.data % PAGE
    yield memory[begin + PAGE - 100 : begin + 5 * PAGE + 100]
    for_tests.end_watch_of_pages()


def test_the_first_read_is_noticed_at_its_line(array: np.ndarray[Any, Any]) -> None:
    seen = Seen(array)
    for_tests.watch_pages([(*bounds(array), True)], seen)
    assert array[3 * PAGE] == 0
    assert array[3 * PAGE] == 0
    assert seen.accesses == [(3 * PAGE, False)]
    assert seen.lines == ["assert array[3 * PAGE] == 0"]


def test_a_write_is_told_from_a_read(array: np.ndarray[Any, Any]) -> None:
    seen = Seen(array)
    for_tests.watch_pages([(*bounds(array), False)], seen)
    assert array.sum() == 0
    assert not seen.accesses
    array[2 * PAGE] = 7
    assert seen.accesses == [(2 * PAGE, True)]
    assert array[2 * PAGE] == 7


def test_parts_of_pages_are_not_watched(array: np.ndarray[Any, Any]) -> None:
    seen = Seen(array)
    for_tests.watch_pages([(*bounds(array), True)], seen)
    array[:100] = array[-100:] = 1
    assert not seen.accesses
    array[100] = 1
    assert seen.accesses == [(100, True)]


def test_the_stricter_of_two_watches_of_a_page_holds(array: np.ndarray[Any, Any]) -> None:
    seen = Seen(array)
    begin, end = bounds(array)
    for_tests.watch_pages([(begin, end, False), (begin + 100 + PAGE, begin + 100 + 2 * PAGE, True)], seen)
    assert array[100] == 0
    assert not seen.accesses
    assert array[100 + PAGE] == 0
    assert seen.accesses == [(100 + PAGE, False)]


def test_other_ranges_take_the_place_of_those_before(array: np.ndarray[Any, Any]) -> None:
    seen = Seen(array)
    begin, _ = bounds(array)
    for_tests.watch_pages([(begin, begin + 100 + PAGE, True)], seen)
    for_tests.watch_pages([(begin + 100 + PAGE, begin + 100 + 2 * PAGE, True)], seen)
    array[100] = 1
    assert not seen.accesses
    for_tests.watch_pages([], seen)
    array[:] = 1
    assert not seen.accesses


def test_a_pause_notices_nothing_and_keeps_the_watch(array: np.ndarray[Any, Any]) -> None:
    seen = Seen(array)
    for_tests.watch_pages([(*bounds(array), True)], seen)
    with _core.PauseOfWatch():
        with _core.PauseOfWatch():
            array[:] = 1
        array[:] = 2
    assert not seen.accesses
    assert array[100] == 2
    assert seen.accesses == [(100, False)]


def test_what_the_function_raises_reaches_the_program(array: np.ndarray[Any, Any]) -> None:
    def refuse(address: int, write: bool) -> None:
        raise LookupError(address, write)

    for_tests.watch_pages([(*bounds(array), True)], refuse)
    with pytest.raises(LookupError) as raised:
        sum(map(int, (array[place] for place in range(100, 2 * PAGE))))
    assert raised.value.args == (array.ctypes.data + 100, False)


def test_threads_without_the_lock_of_python_are_noticed(array: np.ndarray[Any, Any]) -> None:
    memory = np.zeros(1 << 20, np.uint8)  # NumPy gives the lock back while it copies so much
    seen: list[bool] = []
    for_tests.watch_pages([(*bounds(memory), True)], lambda address, write: seen.append(write))
    in_threads(memory.copy, 8 * [()])
    assert seen == [False]


def test_the_function_may_touch_other_watched_memory(array: np.ndarray[Any, Any]) -> None:
    begin, end = bounds(array)
    seen: list[int] = []

    def look(address: int, write: bool) -> None:
        seen.append(address - begin)
        array[100 + PAGE] = 1

    for_tests.watch_pages([(begin, begin + 100 + PAGE, True), (begin + 100 + PAGE, end, False)], look)
    assert array[100] == 0
    assert seen == [100, 100 + PAGE]


def test_a_crash_elsewhere_is_reported_as_before(run_python: RunPython) -> None:
    done = run_python(
        """
import ctypes, faulthandler, numpy
from tcuda._core import for_tests
faulthandler.enable()
memory = numpy.zeros(1 << 16, numpy.uint8)
begin = memory.ctypes.data
for_tests.watch_pages([(begin, begin + memory.nbytes, True)], print)
ctypes.string_at(8)
"""
    )
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr
    assert "string_at" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads the handler from the file system of Linux")
def test_the_end_of_the_watch_gives_the_signal_back(array: np.ndarray[Any, Any]) -> None:
    seen = Seen(array)
    faulthandler.enable()
    for_tests.watch_pages([(*bounds(array), True)], seen)
    faulthandler.enable()  # takes the signal
    for_tests.watch_pages([(*bounds(array)[:1], array.ctypes.data + 100 + PAGE, True)], seen)  # takes it again
    assert array[100] == 0
    assert seen.accesses == [(100, False)]
    for_tests.end_watch_of_pages()
    array[:] = 1
    assert len(seen.accesses) == 1


LATER_HANDLER = """
import ctypes, faulthandler, signal, numpy
from tcuda._core import for_tests
memory = numpy.zeros(1 << 16, numpy.uint8)
begin = memory.ctypes.data
seen = []
def watch():
    for_tests.watch_pages([(begin, begin + memory.nbytes, True)], lambda address, write: seen.append(address - begin))
watch()
faulthandler.enable()  # takes the signal
"""


def test_an_access_is_noticed_although_faulthandler_has_taken_the_signal(run_python: RunPython) -> None:
    done = run_python(LATER_HANDLER + "print(memory[9000], seen)\nwatch()\nprint(memory[9001], seen)")
    assert (done.returncode, done.stdout) == (0, "0 [9000]\n0 [9000, 9001]\n"), done.stderr


def test_an_access_is_noticed_after_faulthandler_has_given_the_signal_back(run_python: RunPython) -> None:
    done = run_python(LATER_HANDLER + "faulthandler.disable()\nprint(memory[9000], seen)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 [9000]\n", "")


@pytest.mark.parametrize("again", ["", "watch()", "watch()\nfor_tests.end_watch_of_pages()"])
def test_a_crash_under_a_later_faulthandler_is_reported_once(run_python: RunPython, again: str) -> None:
    done = run_python(LATER_HANDLER + f"{again}\nctypes.string_at(8)")
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("Segmentation fault") == 1
    assert "string_at" in done.stderr


@pytest.mark.parametrize("again", ["", "watch()"])
def test_a_crash_after_the_end_of_a_later_faulthandler_ends_the_process(run_python: RunPython, again: str) -> None:
    done = run_python(LATER_HANDLER + f"{again}\nfaulthandler.disable()\nctypes.string_at(8)")
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")


LATER_HANDLERS = {
    "of Python": "signal.signal(signal.SIGSEGV, print)",
    "of C": "libc.signal(signal.SIGSEGV, ctypes.cast(libc.labs, ctypes.c_void_p))",
    "of faulthandler": "faulthandler.enable()",
    "of faulthandler, until its end": "faulthandler.enable(); watch(); faulthandler.disable()",
}
ANY_HANDLER = """
import ctypes, faulthandler, mmap, signal
from tcuda._core import for_tests
libc = ctypes.CDLL(None)
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
signal.alarm(30)  # ends an endless loop
pages = mmap.mmap(-1, 4 * mmap.PAGESIZE)
begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
seen = []
def watch():
    for_tests.watch_pages([(begin, begin + len(pages), False)], lambda address, write: seen.append(address - begin))
watch()
"""
CRASHES = {
    "no memory": "ctypes.string_at(8)",
    "memory that cannot be written": "ctypes.memset(ctypes.pythonapi.Py_GetVersion, 1, 1)",  # the code of a function
}


@pytest.mark.parametrize("handler", LATER_HANDLERS)
def test_an_access_is_noticed_under_any_later_handler(run_python: RunPython, handler: str) -> None:
    take = LATER_HANDLERS[handler]
    done = run_python(
        f"{ANY_HANDLER}\n{take}\npages[5] = 1\nwatch()\npages[6] = 1\n{take}\nwatch()\npages[7] = 1\nprint(seen)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[5, 6, 7]"


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("again", ["", "watch()", "pages[5] = 1"])
@pytest.mark.parametrize("handler", LATER_HANDLERS)
def test_a_crash_under_any_later_handler_ends_the_process(
    run_python: RunPython, handler: str, again: str, crash: str
) -> None:
    done = run_python(f"{ANY_HANDLER}\n{LATER_HANDLERS[handler]}\n{again}\nwatch()\n{CRASHES[crash]}")
    assert done.returncode == -signal.SIGSEGV, done.stderr
    assert done.stderr.count("Segmentation fault") == (handler == "of faulthandler")


def test_a_process_forks_without_warnings_while_pages_are_watched(run_python: RunPython) -> None:
    done = run_python(
        f"""{ANY_HANDLER}
import os
for place in range(5, 10):
    child = os.fork()  # Python warns of threads of the core
    if child == 0:
        pages[place] = 1
        os._exit(len(seen))
    assert os.waitpid(child, 0)[1] >> 8 == place - 5
    watch()
    signal.signal(signal.SIGSEGV, print)
    pages[place] = 1
    watch()
print(seen)
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[5, 6, 7, 8, 9]"


def test_a_signal_that_the_program_raises_ends_the_process(run_python: RunPython) -> None:
    done = run_python(LATER_HANDLER + "faulthandler.disable()\nsignal.raise_signal(signal.SIGSEGV)")
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_crash_inside_of_the_allocator_ends_the_process(run_python: RunPython, tmp_path: Path) -> None:
    # The thread holds a lock of the allocator, so that the handler must not allocate.
    (tmp_path / "crash.c").write_text(
        """
#include <pthread.h>
#include <stdlib.h>
static void *crash(void *unused) {
    void **freed = malloc(2000), *volatile behind = malloc(2000);
    free(freed);
    ((void *volatile *)freed)[1] = (void *)8;
    behind = malloc(3000);
    return behind;
}
void crash_in_thread(void) {
    pthread_t thread;
    pthread_create(&thread, 0, crash, 0);
    pthread_join(thread, 0);
}
"""
    )
    command = ["cc", "-w", "-O0", "-shared", "-fPIC", "-pthread", "-o", "crash.so", "crash.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    watch = LATER_HANDLER.replace("faulthandler.enable()  # takes the signal", "signal.alarm(30)  # ends a deadlock")
    done = run_python(f"{watch}\nctypes.CDLL('./crash.so').crash_in_thread()")
    assert done.returncode == -signal.SIGSEGV
