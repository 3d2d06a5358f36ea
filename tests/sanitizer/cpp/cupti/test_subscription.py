"""The subscription of CUPTI: what is enabled, what is left behind, and what the messages say."""

from __future__ import annotations

import ctypes
import gc
import shutil
import struct
import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from support.core import for_tests
from support.cupti import CONTEXT, CONTEXT_DESTROYED, EVENT, MAIN, MEMORY, SIDE, Cupti, Watched
from support.threads import in_thread, in_threads
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.fixture_types import CompiledCpp

DRIVER, RESOURCE = 1, 3


def test_exactly_the_watched_calls_are_enabled(cupti: Cupti, watched: Watched) -> None:
    for identifier in range(1024):
        expected = identifier in cupti.ids.values()
        assert bool(cupti.stub.stub_is_enabled(DRIVER, identifier)) == expected
    assert cupti.stub.stub_is_enabled(RESOURCE, CONTEXT_DESTROYED)
    assert cupti.stub.stub_enabled_count() == len(cupti.ids) + 1


def test_the_end_leaves_nothing_behind(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    watched.watch.end()
    assert cupti.stub.stub_enabled_count() == 0
    assert not cupti.stub.stub_subscribed()
    cupti.fill(SIDE)
    assert watched.found() == []
    watched.watch.end()  # nothing more to end


def test_a_callback_after_the_end_is_ignored(cupti: Cupti, watched: Watched) -> None:
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_char_p)(
        cupti.stub.stub_callback()
    )
    watched.watch.end()
    callback(None, DRIVER, cupti.ids["cuMemsetD8Async"], b"\0" * 72)
    assert watched.steps() == []


def test_a_process_can_watch_again(cupti: Cupti) -> None:
    for _ in range(3):
        again = Watched(cupti)
        cupti.fill(MAIN)
        cupti.fill(SIDE)
        assert [race.kind for race in again.found()] == ["write after write"]
        again.watch.end()
    assert cupti.stub.stub_subscriptions() == 3


def test_a_watch_that_is_dropped_ends(cupti: Cupti) -> None:
    made = Watched(cupti)
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
    assert not cupti.stub.stub_subscribed()


def test_a_process_has_one_watch(cupti: Cupti, watched: Watched) -> None:
    with pytest.raises(RuntimeError, match="another race detector watches this process already"):
        Watched(cupti)
    cupti.fill(MAIN)
    cupti.fill(SIDE)
    assert len(watched.found()) == 1


def test_another_tool_is_named(cupti: Cupti) -> None:
    cupti.stub.stub_set_subscribe_status(39)
    with pytest.raises(RuntimeError, match='serves one tool at a time, and "CUPTI for a profiler" uses CUPTI already'):
        Watched(cupti)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (12, "serves one tool at a time, and another tool uses CUPTI already"),
        (14, "does not fit the driver"),
        (35, "does not allow this user"),
        (998, "CUPTI refuses: the stand-in says no"),
        (997, "CUPTI refuses: status 997"),
    ],
)
def test_a_refusal_says_why(cupti: Cupti, status: int, message: str) -> None:
    cupti.stub.stub_set_subscribe_status(status)
    with pytest.raises(RuntimeError, match=message):
        Watched(cupti)
    cupti.stub.stub_set_subscribe_status(0)
    Watched(cupti).watch.end()


def test_an_old_library_is_refused(cupti: Cupti) -> None:
    cupti.stub.stub_set_version(17)
    with pytest.raises(RuntimeError, match=r"libcupti_stub.so has version 17 of CUPTI, which is too old: version 18 "):
        Watched(cupti)


def test_a_library_that_is_older_than_a_call_does_without_the_call(cupti: Cupti) -> None:
    cupti.stub.stub_set_newest_id(660)
    made = Watched(cupti)
    assert cupti.stub.stub_enabled_count() == 1 + sum(identifier <= 660 for identifier in cupti.ids.values())
    cupti.fill(MAIN)
    cupti.fill(SIDE)
    assert len(made.found()) == 1
    made.watch.end()
    assert cupti.stub.stub_enabled_count() == 0


def test_a_missing_library_is_named(cupti: Cupti, tmp_path: Path) -> None:
    detector = _core.RaceDetector(print)
    with pytest.raises(RuntimeError, match=r"CUPTI cannot be loaded: .*nowhere\.so"):
        _core.DriverWatch(detector, str(tmp_path / "nowhere.so"), cupti.path)
    with pytest.raises(RuntimeError, match=r"nodriver\.so cannot be loaded"):
        _core.DriverWatch(detector, cupti.path, str(tmp_path / "nodriver.so"))
    assert cupti.stub.stub_subscriptions() == 0


def test_a_library_without_the_functions_is_refused(cupti: Cupti, plugged_path: str) -> None:
    with pytest.raises(RuntimeError, match="lacks functions of CUPTI"):
        _core.DriverWatch(_core.RaceDetector(print), plugged_path, cupti.path)
    with pytest.raises(RuntimeError, match="lacks functions that the race detector needs"):
        _core.DriverWatch(_core.RaceDetector(print), cupti.path, plugged_path)


def test_a_library_that_is_loaded_already_is_taken(compiled_cpp: CompiledCpp, tmp_path: Path) -> None:
    """Two copies of CUPTI in a process would not know of each other."""
    first = Cupti(compiled_cpp("cupti_stub", "-Wl,-soname,libcupti_twice.so"))
    copy = tmp_path / "copy" / "libcupti_twice.so"
    copy.parent.mkdir()
    shutil.copy(first.path, copy)
    made = _core.DriverWatch(_core.RaceDetector(print), str(copy), first.path)
    assert first.stub.stub_subscribed()
    made.end()


def test_the_function_of_the_detector_is_not_called_in_a_callback(cupti: Cupti, watched: Watched) -> None:
    told: list[threading.Thread] = []
    detector = _core.RaceDetector(lambda race: told.append(threading.current_thread()))
    watched.watch.end()
    watch = _core.DriverWatch(detector, cupti.path, cupti.path)
    in_thread(lambda: [cupti.fill(MAIN), cupti.fill(SIDE)])
    watch.end()
    _core.deliver_races()
    assert told == [threading.main_thread()]


def test_the_stacks_are_those_of_the_calls(cupti: Cupti, watched: Watched) -> None:
    cupti.fill(MAIN)
    cupti.fill(SIDE)
    (race,) = watched.found()
    lines = [frame["line"] for access in (race.previous, race.current) for frame in access.stack[2:3]]
    assert lines[1] == lines[0] + 1


def test_no_thread_is_in_a_callback_after_the_end(cupti: Cupti) -> None:
    callback_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
    status = ctypes.c_int(0)
    parameters = (ctypes.c_uint64 * 2)(EVENT, MAIN)
    call = (ctypes.c_uint64 * 9)(1, 0, ctypes.addressof(parameters), ctypes.addressof(status), 0, CONTEXT, 0, 0, 0)
    arguments = (None, DRIVER, cupti.ids["cuEventRecord"], ctypes.addressof(call))

    def repeat(callback: Callable[..., None], stop: threading.Event) -> None:
        while not stop.is_set():
            callback(*arguments)  # without Python's lock

    for _ in range(20):
        made = Watched(cupti)
        stop = threading.Event()
        callback = callback_type(cupti.stub.stub_callback())
        threads = [threading.Thread(target=repeat, args=(callback, stop)) for _ in range(3)]
        for thread in threads:
            thread.start()
        made.watch.end()
        before = made.steps()
        made.detector.event_destroyed(EVENT)
        stop.set()
        for thread in threads:
            thread.join()
        assert made.steps() == before
        assert for_tests.sizes_of_detector(made.detector)["events"] == 0


def test_races_of_threads_without_pythons_lock_are_delivered_with_their_stacks(cupti: Cupti, watched: Watched) -> None:
    free = ctypes.CDLL(cupti.path)
    free.stub_call.argtypes = cupti.stub.stub_call.argtypes

    def fill(stream: int) -> None:
        parameters = struct.pack("@QBNP", MEMORY, 0, 64, stream)
        for _ in range(500):
            free.stub_call(cupti.ids["cuMemsetD8Async"], CONTEXT, None, parameters, 0, 3)

    for_tests.begin_stack_notes(60_000)  # no stack is left out because the machine is slow
    in_threads(fill, zip((MAIN, SIDE)))
    for_tests.end_stack_notes()
    assert watched.detector.operations == 1000
    found = watched.found()
    assert len(found) > 0
    assert {race.current.stack[0]["name"] for race in found} == {"fill"}


def test_a_callback_without_known_data_is_harmless(cupti: Cupti, watched: Watched) -> None:
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(
        cupti.stub.stub_callback()
    )
    callback(None, DRIVER, cupti.ids["cuMemsetD8Async"], None)
    callback(None, DRIVER, 100_000, (ctypes.c_uint64 * 9)())
    callback(None, 77, 1, (ctypes.c_uint64 * 9)())
    assert watched.steps() == []


def test_modules_do_not_disturb(cupti: Cupti, watched: Watched) -> None:
    module = ctypes.c_uint64(0x77)
    assert cupti.call("cuModuleLoadData", "PP", ctypes.addressof(module), 0) == 2
    assert cupti.call("cuModuleUnload", "P", 0x77) == 2
    assert watched.steps() == []
