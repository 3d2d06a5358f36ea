"""The small programs in ``tests/sanitizer/corpus``, and what a report on each of them must say.

A file ``NAME_right.py`` or ``NAME_wrong.py`` is one program. Another file ``NAME.py`` is a pair: the file is the wrong
program, and the right program has the call in the comment ``# missing:`` as code.
"""

from __future__ import annotations

import gc
import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import tcuda
from support.folders import TESTS

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = TESTS / "sanitizer" / "corpus"

_MARK = re.compile(r"  # (first|second|first launch|second launch|launch)$")
_MISSING = re.compile(r"^ *# (missing|reported as): (.+)$")
_CALL = re.compile(r"^( *)# missing: ", re.MULTILINE)


class Program(NamedTuple):
    """A program of the corpus.

    The lines are those that the marks of the program name, and None without a mark.

    Attributes:
        name: The name of the program, which ends with ``_right`` or ``_wrong``.
        path: The file of the program, which both programs of a pair may have in common.
        text: The source.
        devices: The number of devices that the program needs.
        first: The line of the access that comes first in the program.
        second: The line of the access at which the race is found.
        first_launch: The line that launches the graph with the first access.
        second_launch: The line that launches the graph with the second access.
        missing: The call that is missing, as the report writes the call.
    """

    name: str
    path: Path
    text: str
    devices: int
    first: int | None
    second: int | None
    first_launch: int | None
    second_launch: int | None
    missing: str | None

    @property
    def pair(self) -> str:
        """The name that a right and a wrong program have in common."""
        return self.name.rpartition("_")[0]

    @property
    def right(self) -> bool:
        return self.name.endswith("_right")


def programs(folder: Path = FOLDER) -> list[Program]:
    """Return all programs of a folder."""
    return sorted(program for path in folder.glob("*.py") for program in _read(path))


def _read(path: Path) -> list[Program]:
    """Return the program of a file, or the wrong and the right program of a pair."""
    text = path.read_text()
    if path.stem.endswith(("_right", "_wrong")):
        return [_program(path.stem, path, text)]
    right, calls = _CALL.subn(r"\1", text)
    assert calls == 1, f"{path.name} has {calls} calls that are missing"
    return [_program(f"{path.stem}_wrong", path, text), _program(f"{path.stem}_right", path, right)]


def _program(name: str, path: Path, text: str) -> Program:
    marks: dict[str, int] = {}
    missing = None
    for number, line in enumerate(() if name.endswith("_right") else text.splitlines(), 1):
        if mark := _MARK.search(line):
            names = ["first launch", "second launch"] if mark[1] == "launch" else [mark[1]]
            for each in names:
                assert each not in marks, f"{path.name} has two marks {each!r}"
                marks[each] = number
        if call := _MISSING.match(line):
            missing = call[2]
    return Program(
        name,
        path,
        text,
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
        exec(compile(program.text, program.path, "exec"), {"__name__": program.name})
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
