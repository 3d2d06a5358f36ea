"""The small programs in ``tests/sanitizer/corpus``, and what a report on each of them must say."""

from __future__ import annotations

import gc
import re
import runpy
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import tcuda
from support.folders import TESTS

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = TESTS / "sanitizer" / "corpus"

_MARK = re.compile(r"  # (first|second|first launch|second launch|launch)$")
_MISSING = re.compile(r"^ *# (missing|reported as): (.+)$")


class Program(NamedTuple):
    """A program of the corpus.

    The lines are those that the marks of the program name, and None without a mark.

    Attributes:
        first: The line of the access that comes first in the program.
        second: The line of the access at which the race is found.
        first_launch: The line that launches the graph with the first access.
        second_launch: The line that launches the graph with the second access.
        missing: The call that is missing, as the report writes the call.
    """

    path: Path
    devices: int
    first: int | None
    second: int | None
    first_launch: int | None
    second_launch: int | None
    missing: str | None

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def pair(self) -> str:
        """The name that a right and a wrong program have in common."""
        return self.name.rpartition("_")[0]

    @property
    def right(self) -> bool:
        return self.name.endswith("_right")


def programs(folder: Path = FOLDER) -> list[Program]:
    """Return all programs of a folder."""
    return [_read(path) for path in sorted(folder.glob("*.py"))]


def _read(path: Path) -> Program:
    text = path.read_text()
    marks: dict[str, int] = {}
    missing = None
    for number, line in enumerate(text.splitlines(), 1):
        if mark := _MARK.search(line):
            names = ["first launch", "second launch"] if mark[1] == "launch" else [mark[1]]
            for name in names:
                assert name not in marks, f"{path.name} has two marks {name!r}"
                marks[name] = number
        if call := _MISSING.match(line):
            missing = call[2]
    return Program(
        path,
        devices=2 if "\n# needs two devices\n" in text else 1,
        first=marks.get("first"),
        second=marks.get("second"),
        first_launch=marks.get("first launch"),
        second_launch=marks.get("second launch"),
        missing=missing,
    )


def run(program: Program) -> BaseException | None:
    """Run a program in this process, and return the error with which the program or one of its threads failed.

    Afterwards all devices are idle, and the memory of the program is free.
    """
    errors: list[BaseException] = []
    hook = threading.excepthook
    threading.excepthook = lambda failed: errors.append(failed.exc_value or failed.exc_type())
    try:
        runpy.run_path(str(program.path))
    except Exception as error:
        error.__traceback__ = None  # the frames hold the arrays of the program
        errors.insert(0, error)
    finally:
        threading.excepthook = hook
        tcuda.default_stream().use()
        for device in range(tcuda.device_count()):
            tcuda.synchronize(device)
        gc.collect()
        tcuda.empty_cache()
    return errors[0] if errors else None


def line_in(program: Program, stack: list[dict[str, Any]] | None) -> int | None:
    """Return the line of the innermost frame of ``stack`` that is in the program, or None."""
    lines = (int(frame["line"]) for frame in stack or () if frame["filename"] == str(program.path))
    return next(lines, None)
