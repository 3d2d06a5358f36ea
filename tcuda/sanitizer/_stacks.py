"""Python stacks of accesses: the frames of the user's program, and their text.

A stack is a list of frames, innermost first, as in the history of memory.
"""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from tcuda._base.cells import is_outside, is_shell, runs_cells, shown
from tcuda._base.user_code import is_library, is_runner

if TYPE_CHECKING:
    import traceback
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120  # names of frames are texts too
_PROGRAMS = os.path.join(_PACKAGE, "demo", "")  # noqa: PTH118
"""The folder of tcuda's example program, which is a user of tcuda like any other program."""

_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120
_RUNPY = os.path.join(_STANDARD, "runpy.py")  # noqa: PTH118
_STARTERS = tuple(os.path.join(_STANDARD, "multiprocessing", name) for name in ("spawn.py", "forkserver.py"))  # noqa: PTH118
"""The files whose functions are the command of a process that :mod:`multiprocessing` starts."""

_ORDERS = tuple(os.path.join(_PACKAGE, *path, "") for path in (("streams",), ("accelerator",), ("emulation", "cuda")))  # noqa: PTH118
"""The folders of the functions by which a program records events and waits for them."""


class Frame(NamedTuple):
    """A frame of a stack.

    Attributes:
        name: The name of the function.
        filename: The file of the function.
        line: The number of the line that ran.
    """

    name: str
    filename: str
    line: int

    def as_dict(self) -> dict[str, Any]:
        """Return the frame as the history of memory has it."""
        return self._asdict()


def frames(stack: Sequence[Mapping[str, Any]] | None) -> tuple[Frame, ...]:
    """Return a stack of the core as frames, innermost first."""
    return tuple(Frame(frame["name"], shown(frame["filename"]), frame["line"]) for frame in stack or ())


def frame_of(frame: FrameType) -> Frame:
    """Return a frame that runs."""
    return Frame(frame.f_code.co_name, shown(frame.f_code.co_filename), frame.f_lineno)


def users(stack: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames of the user's program, innermost first.

    The frames of tcuda are left out, and so are those of IPython and the callers of a cell, and those of pytest and the
    callers of pytest. The innermost frames of the
    standard library and of array libraries are left out too, because the user's line called them. If nothing remains,
    all frames are returned. The command of a process of :mod:`multiprocessing` is no line of the program: without such
    a line, as for arguments that such a process reads, the frames of the standard library stay.
    """
    inside = list(itertools.takewhile(lambda frame: not runs_cells(frame.name, frame.filename), stack))
    runners = [place for place, frame in enumerate(inside) if is_runner(frame.filename)]
    kept = [
        frame
        for place, frame in enumerate(inside[: runners[-1]] if runners else inside)
        if not (place in runners or _is_own(frame.filename) or is_shell(frame.filename) or _is_command(stack, place))
    ]
    first = next((place for place, frame in enumerate(kept) if not is_library(frame.filename)), 0)
    return tuple(kept[first:]) or tuple(stack)


def living_frames() -> Iterator[FrameType]:
    """Yield the frames of this thread that belong to the user's program, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_outside(frame):
        if not _is_own(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _is_own(filename: str) -> bool:
    if filename.startswith(_PACKAGE):
        return not filename.startswith(_PROGRAMS)
    return filename.startswith("<frozen ") or filename == _RUNPY


def _is_command(stack: Sequence[Frame], place: int) -> bool:
    return stack[place].filename == "<string>" and place > 0 and stack[place - 1].filename in _STARTERS


def is_asked_for(stack: Sequence[Frame]) -> bool:
    """Return whether the program asked for an event: false for an event that tcuda made inside another call.

    The function of tcuda that the program called decides. Without such a function, a library called the driver.
    """
    first = next(iter(users(stack)), None)
    inside = itertools.takewhile(lambda frame: frame != first, stack)
    called = [frame.filename for frame in inside if _is_own(frame.filename)][-1:]
    return all(filename.startswith(_ORDERS) for filename in called)


def summary(stack: Sequence[Frame]) -> traceback.StackSummary:
    """Return the user's frames as :mod:`traceback` has them: outermost first, with the lines of the source."""
    import traceback  # here, because the import takes long

    rows = [(frame.filename, frame.line, frame.name, None) for frame in reversed(users(stack))]
    return traceback.StackSummary.from_list(rows)


def text(stack: Sequence[Frame]) -> str:
    """Return the user's frames as :mod:`traceback` prints them."""
    return "".join(summary(stack).format())
