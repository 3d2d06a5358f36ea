"""A trace of the lines of the program: a call after each line that a thread has run.

The trace is that of :func:`sys.settrace`. A thread has one trace function, so a debugger, or a tool that measures
coverage, excludes the trace.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcuda._base.user_code import Place, is_user_code

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


class LineTrace:
    """Calls functions after each line of the program that this thread has run. Lines of libraries belong to the caller.

    The functions are called in the thread of the trace, and ask :meth:`place` for the line.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[], object]] = []
        self._traced: list[FrameType] = []
        """The frames that had begun before the trace."""
        self._code: CodeType | None = None
        self._line = 0

    def place(self) -> Place | None:
        """Return the line of the program that has run; None if a library runs without a program."""
        code = self._code
        return None if code is None else Place(code.co_filename, self._line, code.co_name)

    def is_running(self) -> bool:
        """Return whether Python still traces this thread for this trace: a debugger may have begun in the program."""
        return _trace_of(sys.gettrace()) is self

    def _begin(self, frame: FrameType | None) -> None:
        self._move_to(frame)
        while frame is not None:
            # A frame that an ended trace has entered still has the function of that trace.
            is_free = frame.f_trace is None or _trace_of(frame.f_trace) is not None
            if is_free and is_user_code(frame.f_code.co_filename):
                frame.f_trace = self._step
                self._traced.append(frame)
            frame = frame.f_back
        sys.settrace(self._enter)

    def _end(self) -> None:
        for frame in self._traced:
            if frame.f_trace == self._step:
                frame.f_trace = None
        self._traced.clear()

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        """Begin to trace a function of the program. Python calls this method at each call of a function."""
        if not self._listeners:  # the trace was ended in another thread
            sys.settrace(None)
            return None
        if not is_user_code(frame.f_code.co_filename):
            return None
        return self._step(frame, event, argument)

    def _step(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not self._listeners:
            return None
        if event != "exception":
            for listener in list(self._listeners):
                listener()
            self._move_to(frame if event != "return" else frame.f_back)
        return self._step

    def _move_to(self, frame: FrameType | None) -> None:
        while frame is not None and not is_user_code(frame.f_code.co_filename):
            frame = frame.f_back
        self._code, self._line = (None, 0) if frame is None else (frame.f_code, frame.f_lineno)


def begin_trace(listener: Callable[[], object]) -> LineTrace | None:
    """Call ``listener`` after each line of the program that this thread runs, until :func:`end_trace`.

    Returns:
        The trace, in which another listener may take part; None if another tool traces the thread.
    """
    tracing = sys.gettrace()
    if tracing is None:
        trace = LineTrace()
    else:
        found = _trace_of(tracing)
        if found is None:
            return None
        trace = found
    trace._listeners.append(listener)
    if tracing is None:
        trace._begin(sys._getframe(1))
    return trace


def end_trace(trace: LineTrace, listener: Callable[[], object]) -> None:
    """Call ``listener`` no more. The trace ends with its last listener; a second call does nothing."""
    if listener in trace._listeners:
        trace._listeners.remove(listener)
        if not trace._listeners:
            if trace.is_running():
                sys.settrace(None)
            trace._end()


def _trace_of(function: object) -> LineTrace | None:
    """Return the trace of which ``function`` is a method; None if there is none."""
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, LineTrace) else None
