"""Tables as text. The first row is the header, and the first column is aligned to the left."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Rows = Sequence[Sequence[str]]


def plain(rows: Rows) -> str:
    """Return the table for a terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths).rstrip() for row in rows)


def markdown(rows: Rows) -> str:
    """Return the table for a document."""
    header, *body = rows
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def note(row: Sequence[str]) -> None:
    """Print a row on the standard error as soon as the row is measured: a time limit may end the process."""
    print(*row, sep="  ", file=sys.stderr, flush=True)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])
