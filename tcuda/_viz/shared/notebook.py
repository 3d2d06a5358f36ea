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
        rows: The cells of each row.
    """
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    top = f"<thead><tr>{names}</tr></thead>" if names else ""
    return f"<table><caption>{html.escape(title)}</caption>{top}<tbody>{lines}</tbody></table>"


def preformatted(text: str) -> str:
    """Return text whose lines and columns are kept."""
    return f"<pre>{html.escape(text)}</pre>"


def _cell(value: object) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    shown = f"{value:,}" if is_number else str(value)
    return f'<td style="text-align: {"right" if is_number else "left"}">{html.escape(shown)}</td>'
