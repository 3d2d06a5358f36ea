"""HTML for the cells of notebooks: a page in a frame, a table, and plain text."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HEIGHT = 640  # pixels


def framed(page: str, title: str) -> str:
    """Return a page in a frame, which keeps its style and its scripts apart from the notebook.

    Args:
        page: The page, as HTML.
        title: The title of the frame.
    """
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="{html.escape(title)}" '
        f'sandbox="allow-scripts" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'
    )


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table. Numbers are aligned to the right, and text to the left.

    Args:
        title: A line above the table.
        head: The names of the columns; empty for a table without names.
        rows: The cells of each row. The cells of a column are all numbers or all text.
    """
    cells = list(rows)
    first = cells[0] if cells else head
    names = "".join(f"<th{_aligned(value)}>{html.escape(name)}</th>" for name, value in zip(head, first, strict=False))
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in cells)
    top = f"<thead><tr>{names}</tr></thead>" if names else ""
    return f"<table><caption>{html.escape(title)}</caption>{top}<tbody>{lines}</tbody></table>"


def preformatted(text: str) -> str:
    """Return text whose lines and columns are kept."""
    return f"<pre>{html.escape(text)}</pre>"


def _cell(value: object) -> str:
    shown = f"{value:,}" if _is_number(value) else str(value)
    return f"<td{_aligned(value)}>{html.escape(shown)}</td>"


def _aligned(value: object) -> str:
    return f' style="text-align: {"right" if _is_number(value) else "left"}"'


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
