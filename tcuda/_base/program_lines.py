"""Lines of the program that has called this package."""

from __future__ import annotations

import sys
from typing import NamedTuple

_INNER = ("tcuda.", "numpy.", "scipy.")
"""The beginnings of the names of modules that are not the program."""


class Line(NamedTuple):
    """A line of the program.

    Attributes:
        file: The file.
        number: The number of the line.
        function: The function.
    """

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number} in {self.function}"


def line_of_program() -> Line:
    """Return the line of the program that has called this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_INNER):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
