"""Races that a callback of the driver finds: the main thread delivers them when it runs Python code."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from support.core import for_tests
from support.races import Watch, write
from support.threads import in_thread, in_threads
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.fixture_types import OutputOf, RunPython

PATIENCE = 60_000  # milliseconds; no test fails because the machine is slow
MOST = 1000  # the core lets so many races wait


class RaceFoundError(Exception):
    pass


@pytest.fixture(autouse=True)
def _notes() -> Iterator[None]:
    for_tests.begin_stack_notes(PATIENCE)
    yield
    for_tests.end_stack_notes()


class Raced(Watch):
    """A detector in which each work of a callback races with work before."""

    def __init__(self) -> None:
        super().__init__()
        self.main, self.side = self.streams(2)

    def race(self, name: str = "fill", *, with_lock: bool = False, detector: _core.RaceDetector | None = None) -> None:
        detector = detector or self.detector
        detector.device_synchronized(0)
        detector.work(0, self.main, "before", [write()])
        for_tests.work_in_callback(detector, 0, self.side, name, [write()], with_lock)


@pytest.fixture
def raced() -> Raced:
    return Raced()


def wait_for_delivery() -> None:
    """Run Python code in which the main thread delivers races."""
    for _ in range(1000):
        (lambda: None)()


@pytest.mark.parametrize("with_lock", [False, True])
def test_the_main_thread_delivers_a_race(raced: Raced, with_lock: bool) -> None:
    raced.race(with_lock=with_lock)
    wait_for_delivery()
    (race,) = raced.races
    assert race.current.operation == "fill"
    assert race.current.stack[0]["name"] == "race"
    assert race.current.stack[1]["name"] == "test_the_main_thread_delivers_a_race"


def test_a_race_is_told_once(raced: Raced) -> None:
    raced.race()
    _core.deliver_races()
    wait_for_delivery()
    _core.deliver_races()
    assert len(raced.races) == 1


def test_an_exception_is_raised_in_the_main_thread() -> None:
    def on_race(race: _core.Race) -> None:
        raise RaceFoundError(race.kind)

    raced = Raced()
    detector = _core.RaceDetector(on_race)
    reached = []
    with pytest.raises(RaceFoundError, match="write after write"):  # noqa: PT012
        raced.race(detector=detector)
        wait_for_delivery()
        reached.append("after")
    assert not reached


def undisturbed(work: Callable[[], object]) -> None:
    """Call ``work`` while the main thread delivers no races, because it is in a delivery."""
    done: list[object] = []
    detector = _core.RaceDetector(lambda _race: done.append(work()))
    Raced().race(detector=detector)
    wait_for_delivery()
    assert len(done) == 1


def test_an_exception_ends_the_delivery_of_its_detector() -> None:
    told: list[str] = []
    failures: list[RaceFoundError] = []

    def on_race(race: _core.Race) -> None:
        told.append(race.current.operation)
        raise RaceFoundError

    raced, other = Raced(), Raced()
    detector = _core.RaceDetector(on_race)

    def deliver() -> None:
        try:
            _core.deliver_races()
        except RaceFoundError as error:
            failures.append(error)
            _core.deliver_races()

    def find() -> None:
        for name in ("one", "two", "three"):
            raced.race(name, detector=detector)
        other.race()
        in_thread(deliver)

    undisturbed(find)
    assert told == ["one"]
    assert len(failures) == 1
    assert [race.current.operation for race in detector.races()] == ["one", "two", "three"]
    assert len(other.races) == 1


def test_races_of_other_threads_are_delivered_in_the_main_thread() -> None:
    threads: set[threading.Thread] = set()
    lock = threading.Lock()
    count = 0

    def on_race(_race: _core.Race) -> None:
        nonlocal count
        threads.add(threading.current_thread())
        count += 1

    detectors = [_core.RaceDetector(on_race) for _ in range(8)]

    def find(detector: _core.RaceDetector) -> None:
        with lock:
            raced = Raced()
        for number in range(20):
            raced.race(f"work {number}", detector=detector)

    in_threads(find, zip(detectors))
    wait_for_delivery()
    assert threads == {threading.main_thread()}
    assert count == 8 * 20
    assert for_tests.take_dropped_races() == 0


def test_no_more_races_wait_than_there_is_room_for(raced: Raced) -> None:
    def on_race(_race: _core.Race) -> None:
        if not raced.races:  # while this race is told, no other race is
            raced.races.append(_race)
            for number in range(MOST + 7):
                raced.race(f"work {number}", detector=detector)

    detector = _core.RaceDetector(on_race)
    raced.race(detector=detector)
    wait_for_delivery()
    assert for_tests.take_dropped_races() == 7
    assert for_tests.take_dropped_races() == 0
    assert len(detector.races()) == MOST + 8


def test_a_full_queue_of_the_interpreter_delays_the_delivery_until_the_next_race(raced: Raced) -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    nothing = function(lambda _argument: 0)
    add = ctypes.pythonapi.Py_AddPendingCall
    add.argtypes = [function, ctypes.c_void_p]

    def find() -> None:
        while add(nothing, None) == 0:
            pass
        raced.race("first", with_lock=True)

    before = sys.getswitchinterval()
    sys.setswitchinterval(60)  # the main thread does not empty the queue meanwhile
    try:
        in_thread(find)
    finally:
        sys.setswitchinterval(before)
    wait_for_delivery()
    assert raced.races == []
    raced.race("second")
    wait_for_delivery()
    assert [race.current.operation for race in raced.races] == ["first", "second"]


def test_a_race_that_is_found_while_a_race_is_told_is_told_next() -> None:
    raced = Raced()
    told: list[str] = []

    def on_race(race: _core.Race) -> None:
        told.append(f"begin {race.current.operation}")
        if len(told) == 1:
            raced.race("second", detector=detector)
            _core.deliver_races()
            wait_for_delivery()
        told.append(f"end {race.current.operation}")

    detector = _core.RaceDetector(on_race)
    raced.race("first", detector=detector)
    wait_for_delivery()
    assert told == ["begin first", "end first", "begin second", "end second"]


def test_the_races_of_a_detector_that_has_gone_are_dropped(raced: Raced) -> None:
    told: list[_core.Race] = []
    kept = _core.RaceDetector(told.append)

    def find() -> None:
        raced.race("gone", detector=_core.RaceDetector(told.append))
        raced.race("kept", detector=kept)

    undisturbed(find)
    assert [race.current.operation for race in told] == ["kept"]


def test_a_detector_may_go_while_its_race_is_told() -> None:
    raced = Raced()
    told: list[str] = []

    def on_race(race: _core.Race) -> None:
        detectors.clear()
        gc.collect()
        told.append(race.kind)

    detectors = [_core.RaceDetector(on_race)]
    raced.race(detector=detectors[0])
    wait_for_delivery()
    assert told == ["write after write"]


CODE = """
import atexit, os, sys, threading, warnings
sys.path.insert(0, {tests!r})
from support.races import Watch, write
from tcuda import _core
from tcuda._core import for_tests
for_tests.begin_stack_notes(60_000)
told = []
detector = _core.RaceDetector(told.append)

def race(name="fill", with_lock=False):
    for stream in (16, 18):
        detector.stream_created(0, stream, False)
    detector.device_synchronized(0)
    detector.work(0, 16, "before", [write()])
    for_tests.work_in_callback(detector, 0, 18, name, [write()], with_lock)
"""


def code(text: str) -> str:
    from support.folders import REPOSITORY

    return CODE.format(tests=str(REPOSITORY / "tests")) + text


@pytest.mark.parametrize("with_lock", [False, True])
def test_a_race_in_an_exit_handler_harms_nothing(run_python: RunPython, with_lock: bool) -> None:
    done = run_python(code(f"atexit.register(race, with_lock={with_lock})\nprint('end')"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_daemon_threads_that_find_races_at_the_exit(run_python: RunPython) -> None:
    text = """
started = threading.Barrier(4)
def work():
    started.wait()
    while True:
        for number in range(50): race(f"work {number}")
        detector.forget_races()
for _ in range(3): threading.Thread(target=work, daemon=True).start()
started.wait()
for _ in range(10_000): pass
"""
    for _ in range(5):
        done = run_python(code(text))
        assert (done.returncode, done.stderr) == (0, "")


def test_an_exception_ends_the_program_with_its_message(run_python: RunPython) -> None:
    text = """
def on_race(race): raise RuntimeError(f"race of {race.current.operation}")
detector = _core.RaceDetector(on_race)
race("fill")
for _ in range(1000): (lambda: None)()
print("not reached")
"""
    done = run_python(code(text))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "RuntimeError: race of fill"


def test_a_forked_child_does_not_tell_the_races_of_its_parent(output_of: OutputOf) -> None:
    text = """
def on_race(race):
    if not told:
        told.append("first")
        race_in_parent("second")  # waits until this function returns
        child = os.fork()
        if child == 0:
            children.append(True)
            return
        children.append(os.waitpid(child, 0)[1])
    else:
        told.append("second")

race_in_parent = race
children = []
detector = _core.RaceDetector(on_race)
race("first")
for _ in range(1000): (lambda: None)()
_core.deliver_races()
if children == [True]:
    os._exit(0 if told == ["first"] else 1)
print(children, told)
"""
    assert output_of(code(text)) == "[0] ['first', 'second']"
