"""The rule that tells the code of the user's program from the code of the libraries that the program calls.

The rule reads names of files only, because a stack may come from another machine.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import NamedTuple

from tcuda import _core
from tcuda._base.cells import line_in, shown

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"  # The folder of tcuda, which may be outside of site-packages.
_FOLDER = re.compile(r"[/\\]tcuda(?=[/\\])")
_EXAMPLE = f"demo{os.sep}"  # The example program, which is a user of tcuda like any other program.
_MACHINERY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"(?:(?:cupy|cupyx|cupy_backends|numpy|scipy|torch)[/\\]|tcuda[/\\](?!demo[/\\]))"
    r"|[/\\][Ll]ib(?:64)?[/\\]python3[^/\\]*[/\\](?!(?:site|dist)-packages[/\\])"
    r"|\.p(?:yx|xd|xi)$"  # Cython names a file without the folder of its package, so the file may be NumPy's or SciPy's
)
_RUNNERS = re.compile(r"[/\\](?:site|dist)-packages[/\\](?:_?pytest\w*|pluggy|xdist|execnet)[/\\]")
_PYTHON = re.compile(r"\.pyw?$|^<(?!frozen |unknown)|^cell \[\d+\]$")  # <stdin>, <ipython-input-1-...>


class Place(NamedTuple):
    """A line of a program.

    Attributes:
        filename: The file, as Python names it.
        line: The number of the line.
        name: The name of the function.
    """

    filename: str
    line: int
    name: str

    def __str__(self) -> str:
        file = shown(self.filename)
        return f"{line_in(file, self.line) or f'{file}:{self.line}'} in {self.name}"


def calling_place() -> Place | None:
    """Return the line of the program whose call runs in this thread, as :func:`place_of`."""
    return place_of(_core.note_stack())


@functools.lru_cache(maxsize=4096)
def place_of(stack: int) -> Place | None:
    """Return the innermost line of the program in a stack that the core has noted.

    Returns:
        The outermost line if all lines are of libraries. None if the stack has no lines.
    """
    places = [Place(frame["filename"], frame["line"], frame["name"]) for frame in _core.frames_of(stack)]
    return next((place for place in places if not is_library(place.filename)), places[-1] if places else None)


def is_python(filename: str) -> bool:
    """Return whether a file has Python code, and neither native code nor the start of the interpreter."""
    return bool(_PYTHON.search(filename))


def is_user_code(filename: str) -> bool:
    """Return whether a file has Python code of a program that uses tcuda, or of an installed program.

    Python's own modules, tcuda, CuPy, NumPy, SciPy, torch and pytest are no such programs. The demo of tcuda is one.
    """
    return is_python(filename) and not is_library(filename)


@functools.lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Return whether a file belongs to Python, tcuda, pytest, or a library that calls tcuda.

    Code of Cython counts as a library, whoever wrote the code.
    """
    if _name_in_package(filename) is not None:
        return is_own(filename)
    return filename.startswith("<frozen ") or is_runner(filename) or bool(_MACHINERY.search(filename))


@functools.lru_cache(maxsize=4096)
def is_own(filename: str) -> bool:
    """Return whether a file with Python code belongs to tcuda. The demo of tcuda is a program of a user."""
    own = _name_in_package(filename)
    return own is not None and not own.startswith(_EXAMPLE)


def is_runner(filename: str) -> bool:
    """Return whether a file belongs to pytest, which calls the functions of a program."""
    return bool(_RUNNERS.search(filename))


def _name_in_package(filename: str) -> str | None:
    """Return the name of a file of tcuda in the folder of tcuda; None if the file is no file of tcuda.

    The folder may be that of this tcuda, or the folder of a clone on another machine.
    """
    if filename.startswith(_PACKAGE):
        return filename[len(_PACKAGE) :]
    ends = (filename[found.end() + 1 :].replace("\\", os.sep) for found in _FOLDER.finditer(filename))
    return next((end for end in ends if end in _files()), None)


@functools.cache
def _files() -> frozenset[str]:
    """The names of tcuda's Python files in the folder of tcuda."""
    folder = Path(__file__).parents[1]
    return frozenset(str(path.relative_to(folder)) for path in folder.rglob("*.py"))


__all__ = ["Place", "calling_place", "is_library", "is_own", "is_python", "is_runner", "is_user_code", "place_of"]
