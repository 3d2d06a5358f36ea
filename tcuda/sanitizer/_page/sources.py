"""The lines of the program that a report names."""

from __future__ import annotations

import io
import linecache
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base.files import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Mapping

_AROUND = 3
_LARGEST_FILE = 1 << 24  # bytes
_LONGEST_LINE = 300  # characters


class Sources:
    """The source lines around the lines that a report names. Each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}
        self._excerpts: dict[str, dict[int, str]] = {}

    def add(self, file: str, line: int) -> None:
        """Add the lines around ``line``; do nothing if the file cannot be read."""
        lines = self._lines(file)
        for number in range(max(1, line - _AROUND), min(len(lines), line + _AROUND) + 1):
            self._excerpts.setdefault(file, {})[number] = lines[number - 1].rstrip()[:_LONGEST_LINE]

    def excerpts(self) -> Mapping[str, Mapping[int, str]]:
        """Return the lines by file and number."""
        return self._excerpts

    def _lines(self, file: str) -> list[str]:
        lines = self._files.get(file)
        if lines is None:
            lines = self._files[file] = lines_of(file)
        return lines


def lines_of(file: str) -> list[str]:
    """Return the lines of a file or of a cell of a notebook; an empty list if the file cannot be read."""
    if file in linecache.cache:  # the cells of a notebook are no files
        return linecache.getlines(file)
    try:
        content = read_regular_file(Path(file), _LARGEST_FILE)
        if b"\0" in content:
            return []
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return io.TextIOWrapper(io.BytesIO(content), encoding, errors="replace").readlines()
    except (OSError, ValueError, SyntaxError, LookupError):
        return []


__all__ = ["Sources", "lines_of"]
