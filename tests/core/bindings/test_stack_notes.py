"""The notes of Python stacks that a callback of the driver makes in a thread that has given Python's lock back."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.core import for_tests
from support.free_threading import IS_FREE_THREADED
from tcuda import _core

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from support.fixture_types import OutputOf, RunPython

    Note = Callable[[], tuple[int, int]]

PATIENCE = 60_000  # milliseconds; no test fails because the machine is slow


@pytest.fixture(autouse=True)
def _notes() -> Iterator[None]:
    for_tests.begin_stack_notes(PATIENCE)
    yield
    for_tests.end_stack_notes()


def in_function(note: Note) -> Any:
    return note()


def in_nested_functions(note: Note) -> Any:
    def outer() -> Any:
        def inner() -> Any:
            return note()

        return inner()

    return outer()


def in_generator(note: Note) -> Any:
    def generator() -> Iterator[Any]:
        yield 0
        yield note()

    return list(generator())[1]


def in_delegating_generator(note: Note) -> Any:
    def inner() -> Iterator[Any]:
        yield note()

    def outer() -> Iterator[Any]:
        yield from inner()

    return next(outer())


def in_comprehension(note: Note) -> Any:
    return [[note() for _ in range(2)] for _ in range(2)][1][1]


def in_generator_expression(note: Note) -> Any:
    return max(note() for _ in range(1))


def in_class_body(note: Note) -> Any:
    class Body:
        result = note()

    return Body.result


def in_lambda(note: Note) -> Any:
    return (lambda: note())()


def in_partial(note: Note) -> Any:
    def called(_a: int, *, b: int) -> Any:
        return note(), b

    return functools.partial(called, 1, b=2)()[0]


def in_key_of_sort(note: Note) -> Any:
    results: list[Any] = []

    def key(value: int) -> int:
        results.append(note())
        return value

    sorted([2, 1], key=key)
    return results[-1]


def in_cached_decorator(note: Note) -> Any:
    @functools.lru_cache(None)
    def called(_n: int) -> Any:
        return note()

    return called(1)


def in_special_methods(note: Note) -> Any:
    class Special:
        def __init__(self) -> None:
            self.results = [note()]

        def __getattr__(self, name: str) -> Any:
            return note()

        @property
        def value(self) -> Any:
            return note()

    special = Special()
    first, second = special.results[0], special.missing
    assert first[0] == first[1]
    assert second[0] == second[1]
    return special.value


def in_finalizer(note: Note) -> Any:
    results: list[Any] = []

    class Ends:
        def __del__(self) -> None:
            results.append(note())

    ends = Ends()
    del ends
    return results[0]


def in_finalizer_that_the_garbage_collector_calls(note: Note) -> Any:
    if IS_FREE_THREADED:
        pytest.skip("the collector does not run after each few objects")
    results: list[Any] = []

    class Ends:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            results.append(note())

    def with_cells(a: int, b: int) -> Any:
        return lambda: (a, b)

    before = gc.get_threshold()
    gc.set_threshold(1)  # before Python 3.12, the collector also runs while Python prepares a frame
    try:
        for _ in range(20):
            Ends()
            with_cells(1, 2)()
    finally:
        gc.set_threshold(*before)
    assert len(results) > 5
    assert all(with_lock == without_lock for with_lock, without_lock in results)
    return results[-1]


def in_coroutine(note: Note) -> Any:
    async def inner() -> Any:
        return note()

    async def asynchronous() -> AsyncIterator[Any]:
        yield await inner()

    async def outer() -> Any:
        results = [result async for result in asynchronous()]
        return results[0]

    with pytest.raises(StopIteration) as end:
        outer().send(None)
    return end.value.value


def in_context_manager(note: Note) -> Any:
    @contextlib.contextmanager
    def manager() -> Iterator[Any]:
        yield note()

    with manager() as result:
        return result


def in_executed_code(note: Note) -> Any:
    names: dict[str, Any] = {"note": note}
    exec("def f():\n\n    return note()\nresult = f()", names)
    return names["result"]


def in_evaluated_code(note: Note) -> Any:
    return eval("[note()][0]", {"note": note})


def in_deep_recursion(note: Note) -> Any:
    def deeper(n: int) -> Any:
        return note() if n == 0 else deeper(n - 1)

    return deeper(300)


def in_handler_of_exception(note: Note) -> Any:
    try:
        raise KeyError
    except KeyError:
        return note()


def in_trace_function(note: Note) -> Any:
    results: list[Any] = []

    def trace(frame: Any, event: str, arg: object) -> Any:
        results.append(note())
        assert results[-1][0] == results[-1][1]
        return trace

    def traced() -> int:
        number = 1
        number += 1
        return number

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        traced()
    finally:
        sys.settrace(before)
    return results[0]


def under_trace_function(note: Note) -> Any:
    def trace(frame: Any, event: str, arg: object) -> Any:
        return trace

    def traced() -> Any:
        return (
            0,
            note(),
        )

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return traced()[1]
    finally:
        sys.settrace(before)


SHAPES = [value for name, value in list(globals().items()) if name.startswith(("in_", "under_"))]


@pytest.mark.parametrize("python_first", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_stack_is_the_one_that_python_sees(shape: Callable[[Note], Any], python_first: bool) -> None:
    seen: list[list[tuple[str, int]]] = []

    def note() -> tuple[int, int]:
        frames = []
        frame = sys._getframe().f_back
        while frame is not None:
            frames.append((frame.f_code.co_name, frame.f_lineno))
            frame = frame.f_back
        seen.append(frames)
        return for_tests.note_stack_both_ways(python_first)

    with_lock, without_lock = shape(note)
    assert with_lock == without_lock
    innermost, *frames = [(frame["name"], frame["line"]) for frame in _core.frames_of(without_lock)]
    assert innermost[0] == "note"
    assert frames in seen


def test_notes_of_one_line_have_one_number() -> None:
    numbers = {note() for note in 2 * [_core.note_stack, for_tests.note_stack_without_lock]}
    assert len(numbers) == 1


def test_notes_of_two_lines_have_two_numbers() -> None:
    first = for_tests.note_stack_without_lock()
    second = for_tests.note_stack_without_lock()
    assert first != second
    (one, *_), (two, *_) = _core.frames_of(first), _core.frames_of(second)
    assert two["line"] == one["line"] + 1


def test_a_thread_that_python_does_not_know_has_no_frames() -> None:
    assert _core.frames_of(for_tests.note_stack_in_foreign_thread()) == []


def test_code_that_is_gone_is_still_described() -> None:
    names: dict[str, Any] = {"note": for_tests.note_stack_without_lock}
    exec("def short_lived():\n    return note()\nnumber = short_lived()", names)
    number = names["number"]
    names.clear()
    assert [frame["name"] for frame in _core.frames_of(number)][:2] == ["short_lived", "<module>"]


def test_code_that_is_made_and_dropped_all_the_time(output_of: OutputOf) -> None:
    code = """
from tcuda import _core
from tcuda._core import for_tests
for_tests.begin_stack_notes(60_000)
numbers = set()
source = compile("number = note()", "made.py", "exec")
for count in range(20_000):
    names = {"note": for_tests.note_stack_without_lock}
    exec(source.replace(co_name=f"made{count}"), names)
    numbers.add(names["number"])
print(len(numbers))
wrong = 0
for number in sorted(numbers)[::1000]:
    wrong += not _core.frames_of(number)[0]["name"].startswith("made")
print(wrong)
"""
    assert output_of(code).split() == ["20000", "0"]


@pytest.mark.skipif(IS_FREE_THREADED, reason="no thread can keep the lock")
def test_a_thread_that_keeps_the_lock_delays_a_note_for_a_bounded_time(fresh_output_of: OutputOf) -> None:
    code = """
from tcuda import _core
from tcuda._core import for_tests
for_tests.begin_stack_notes(300)
for count in range(3):
    number, seconds = for_tests.note_stack_against_lock()
    assert _core.frames_of(number) == []
    assert 0.29 < seconds < 5, seconds
number, seconds = for_tests.note_stack_against_lock()  # after three waits in vain
assert _core.frames_of(number) == []
assert seconds < 0.29, seconds
for_tests.end_stack_notes()
for_tests.begin_stack_notes(60_000)
assert [frame["name"] for frame in _core.frames_of(for_tests.note_stack_without_lock())] == ["<module>"]
print("done")
"""
    assert fresh_output_of(code) == "done"


def test_notes_from_many_threads(output_of: OutputOf) -> None:
    code = """
import threading
from tcuda import _core
from tcuda._core import for_tests
for_tests.begin_stack_notes(60_000)
wrong = []

def work(thread):
    for count in range(300):
        names = {"note": for_tests.note_stack_both_ways}
        exec(f"def new{thread}_{count}(): return note()\\nresult = new{thread}_{count}()", names)
        with_lock, without_lock = names["result"]
        if with_lock != without_lock:
            wrong.append((thread, count, _core.frames_of(with_lock), _core.frames_of(without_lock)))

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(wrong))
"""
    assert output_of(code) == "0"


def test_a_fork_in_the_middle_of_notes(output_of: OutputOf) -> None:
    code = """
import os, signal, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
from tcuda import _core
from tcuda._core import for_tests
for_tests.begin_stack_notes(60_000)
stop = threading.Event()

def new_code(note, *args):
    names = {"note": note, "args": args}
    exec("def new(): return note(*args)\\nresult = new()", names)
    return names["result"]

def work(of_new_code):
    while not stop.is_set():
        if of_new_code:
            new_code(for_tests.note_stack_without_lock)
        else:
            for_tests.note_stack_without_lock()
            for_tests.note_stack_without_lock()

def in_child():
    signal.alarm(60)  # ends a child that hangs
    assert new_code(for_tests.note_stack_both_ways, False)[1] == 1  # a child has no keeper
    assert new_code(_core.note_stack) != 1
    for_tests.end_stack_notes()
    for_tests.begin_stack_notes(60_000)
    with_lock, without_lock = new_code(for_tests.note_stack_both_ways, False)
    assert with_lock == without_lock
    for_tests.end_stack_notes()

threads = [threading.Thread(target=work, args=(of_new_code,)) for of_new_code in (True, True, False, False)]
for thread in threads: thread.start()
statuses = set()
for _ in range(50):
    child = os.fork()
    if child == 0:
        try:
            in_child()
            os._exit(0)
        finally:
            os._exit(1)
    statuses.add(os.waitpid(child, 0)[1])
stop.set()
for thread in threads: thread.join()
print(statuses)
"""
    assert output_of(code) == "{0}"


@pytest.mark.parametrize("ends", [True, False])
def test_an_exit_in_the_middle_of_notes(run_python: RunPython, ends: bool) -> None:
    code = f"""
import atexit, threading
from tcuda import _core
from tcuda._core import for_tests
for_tests.begin_stack_notes(60_000)
started = threading.Barrier(5)

def work():
    started.wait()
    while True:
        names = {{"note": for_tests.note_stack_without_lock}}
        exec("def new(): return note()\\nresult = new()", names)
        for_tests.seconds_per_stack_note(1000, False)

for _ in range(4): threading.Thread(target=work, daemon=True).start()
started.wait()
atexit.register(lambda: print(_core.note_stack() > 1, for_tests.note_stack_without_lock() > 1))
if {ends}:
    for_tests.end_stack_notes()
"""
    for _ in range(5):
        done = run_python(code)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"True {not ends}\n", "")


def test_no_notes_without_the_lock_before_the_begin_and_in_exit_handlers(output_of: OutputOf) -> None:
    code = """
import atexit
from tcuda import _core
from tcuda._core import for_tests
def show():
    print(for_tests.note_stack_without_lock() > 1, _core.note_stack() > 1)

def show_at_exit():
    show()
    for_tests.begin_stack_notes(60_000)  # too late
    show()

atexit.register(show_at_exit)
show()
for_tests.begin_stack_notes(60_000)
for_tests.begin_stack_notes(60_000)
for_tests.end_stack_notes()
show()
for_tests.end_stack_notes()
show()
for_tests.end_stack_notes()
for_tests.begin_stack_notes(60_000)
show()
"""
    without, both = "False True", "True True"
    assert output_of(code).splitlines() == [without, both, without, both, without, without]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python collects garbage only between instructions")
@pytest.mark.parametrize("with_lock", [True, False])
def test_a_note_collects_no_garbage(output_of: OutputOf, with_lock: bool) -> None:
    code = f"""
import gc
from tcuda import _core
from tcuda._core import for_tests

collections = []

def deeper(n):
    if n > 0:
        return deeper(n - 1)
    collections.clear()
    note()
    return len(collections)

note = _core.note_stack if {with_lock} else for_tests.note_stack_without_lock
if {not with_lock}:
    for_tests.begin_stack_notes(60_000)
gc.callbacks.append(lambda phase, info: collections.append(phase))
gc.set_threshold(1)
print([deeper(n) for n in (5, 50)], gc.isenabled())
gc.disable()
print([deeper(n) for n in (5, 50)], gc.isenabled())
"""
    assert output_of(code).splitlines() == ["[0, 0] True", "[0, 0] False"]


def test_a_note_with_the_lock_is_cheap() -> None:
    def deeper(n: int) -> float:
        return for_tests.seconds_per_stack_note(20_000, True) if n == 0 else deeper(n - 1)

    assert min(deeper(9) for _ in range(5)) < 10e-6  # about 0.2 us, with the frames of pytest
