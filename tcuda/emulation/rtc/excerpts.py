"""Lines of a source by the names of their files, as a report about a kernel shows them."""

from __future__ import annotations

import linecache
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 300  # characters
_LINE = re.compile(r'\s*#\s*(?:line\s+)?(\d+)\s+"([^"]*)"')


def excerpt(source: str, own_file: str, file: str, first: int, last: int) -> list[tuple[int, str]]:
    """Return the numbers and the texts of the lines of ``file`` from ``first`` to ``last``.

    A kernel that is written in Python has the lines of the program.

    Args:
        source: The source, whose ``#line`` directives name other files.
        own_file: The name of the file of the source.
        file: The name of the file of the lines.
        first: The number of the first line.
        last: The number of the last line.
    """
    program = linecache.getlines(file) if file.endswith(".py") or file.startswith("<") else []
    if program:
        return [
            (number, program[number - 1].rstrip()[:_LONGEST])
            for number in range(max(first, 1), min(last, len(program)) + 1)
        ]
    return [
        (number, text[:_LONGEST])
        for name, number, text in _named(source, own_file)
        if name == file and first <= number <= last
    ]


def _named(source: str, file: str) -> Iterator[tuple[str, int, str]]:
    """Yield the file, the number and the text of each line."""
    number = 1
    for text in source.split("\n"):
        directive = _LINE.match(text)
        if directive is not None:
            number, file = int(directive[1]), directive[2]
        else:
            yield file, number, text
            number += 1
