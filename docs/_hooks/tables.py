"""Labels for the cells of tables: on a narrow screen, the cells of a row stand below each other, with their labels."""

from __future__ import annotations

import html
import re
from typing import Any

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<td\b")
_TAG = re.compile(r"<[^>]+>")


def on_page_content(content: str, **_: Any) -> str:
    """Give the cells of all tables their labels (an event of MkDocs)."""
    return _TABLE.sub(lambda table: labelled(table[0]), content)


def labelled(table: str) -> str:
    """Return a table in which each cell has the heading of its column as its label."""
    labels = [html.escape(html.unescape(_TAG.sub("", head)).strip(), quote=True) for head in _HEAD.findall(table)]

    def row(found: re.Match[str]) -> str:
        left = iter(labels)
        return _CELL.sub(lambda _: f'<td data-label="{next(left, "")}"', found[0])

    return _ROW.sub(row, table)
