"""The trace of the lines of the program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.threads import in_thread
from tcuda._base.line_trace import LineTrace, begin_trace, end_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


class Marks:
    """Work that a program makes, and the line that each piece of work gets."""

    def __init__(self) -> None:
        self.made = 0
        self.lines: list[tuple[str, int]] = []
        self.trace: LineTrace | None = None

    def look(self) -> None:
        """Give the line that has run to the work that is new."""
        for _ in range(self.made - len(self.lines)):
            assert self.trace is not None
            place = self.trace.place()
            assert place is not None
            self.lines.append((place.name, place.line - _first_line(place.name)))

    def begin(self) -> None:
        self.trace = begin_trace(self.look)

    def end(self) -> None:
        assert self.trace is not None
        self.look()
        end_trace(self.trace, self.look)


def _first_line(name: str) -> int:
    function: Callable[..., object] = globals()[name]
    return function.__code__.co_firstlineno  # type: ignore[attr-defined]  # a function of Python has code


@pytest.fixture
def marks() -> Iterator[Marks]:
    before = sys.gettrace()
    sys.settrace(None)
    yield Marks()
    assert sys.gettrace() is None
    sys.settrace(before)


def straight(marks: Marks) -> None:
    marks.begin()
    marks.made += 1
    marks.made += 1
    marks.made += 1
    marks.end()


def inner(marks: Marks) -> None:
    marks.made += 1


def outer(marks: Marks) -> None:
    marks.begin()
    (inner(marks), setattr(marks, "made", marks.made + 1))
    list(map(inner, [marks]))  # a library that calls the program
    marks.end()


def in_loop(marks: Marks) -> None:
    marks.begin()
    for _ in range(2):
        marks.made += 1
    marks.end()


def begin_in_call(marks: Marks) -> None:
    begin_and_return(marks)
    marks.made += 1
    marks.end()


def begin_and_return(marks: Marks) -> None:
    marks.begin()


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (straight, [("straight", 2), ("straight", 3), ("straight", 4)]),
        (outer, [("inner", 1), ("outer", 2), ("inner", 1)]),
        (in_loop, [("in_loop", 3), ("in_loop", 3)]),
        (begin_in_call, [("begin_in_call", 2)]),
    ],
)
def test_work_belongs_to_the_line_that_has_made_it(
    program: Callable[[Marks], None], lines: list[tuple[str, int]], marks: Marks
) -> None:
    program(marks)
    assert marks.lines == lines


def test_two_listeners_share_a_trace(marks: Marks) -> None:
    other = Marks()
    marks.begin()
    straight(other)
    assert sys.gettrace() is not None
    assert other.trace is marks.trace
    marks.end()
    assert [line for _, line in other.lines] == [2, 3, 4]


def test_another_trace_stays(marks: Marks) -> None:
    def debugger(frame: FrameType, event: str, argument: Any) -> None:
        pass

    sys.settrace(debugger)
    trace, after = begin_trace(marks.look), sys.gettrace()
    sys.settrace(None)
    assert (trace, after) == (None, debugger)


def test_a_trace_may_end_in_another_thread(marks: Marks) -> None:
    marks.begin()
    in_thread(marks.end)
    marks.made += 1  # the thread of the trace learns of the end at the next call
    (lambda: None)()
    assert sys.gettrace() is None
    assert not marks.lines


def test_frames_keep_no_trace(marks: Marks) -> None:
    straight(marks)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        assert not isinstance(getattr(frame.f_trace, "__self__", None), LineTrace)
        frame = frame.f_back


def test_a_trace_follows_another_one_in_the_same_frame(marks: Marks) -> None:
    other = Marks()
    other.begin()
    begins_again(other, marks)
    assert [line for _, line in marks.lines] == [3]


def begins_again(other: Marks, marks: Marks) -> None:
    other.end()
    marks.begin()
    marks.made += 1
    marks.end()
