"""The output of commands: with colours, links and lines on a terminal; elsewhere plain text, which is never wrapped.

``NO_COLOR`` leaves out the colours, and ``TERM=dumb`` the links too.
"""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.highlighter import Highlighter
from rich.style import Style
from rich.table import Table

from tcuda._base.messages import send_to_nowhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

_NEVER_WRAPPED = 1 << 16  # columns
_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
_FILE = re.compile(r"(?P<file>[^\s:()'\"`,]+\.\w+):\d+|(?<=^wrote )(?P<output>\S+)$", re.MULTILINE)
_STYLES = {
    re.compile(r"^\d+\. .*$", re.MULTILINE): "bold",  # the title of a finding
    re.compile(r"^ *missing(?=: )|^ok$", re.MULTILINE): "green",
    re.compile(r"^(?:failed|missing)$", re.MULTILINE): "bold red",
}
_QUANTITY = re.compile(r"[+-]?[\d,.]+( \S+)?|unknown|")


class _Reports(Highlighter):
    """Colours for the parts of a report, and links to the files that a report names."""

    def highlight(self, text: Text) -> None:
        """Give a text its colours and links."""
        for pattern, style in _STYLES.items():
            text.highlight_regex(pattern, style)
        for found in _FILE.finditer(text.plain):
            path = Path(found["file"] or found["output"])
            if path.is_file():
                text.stylize(Style(color="cyan", link=path.resolve().as_uri()), *found.span())


class _Messages(Console):
    """A console for messages beside the output of a command: if their reader is gone, the command goes on."""

    def print(self, *objects: Any, **options: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # earlier versions of rich do not call on_broken_pipe()
            super().print(*objects, **options)
            return
        self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        self.quiet = True
        send_to_nowhere(self.file.fileno())


def console(*, stderr: bool = False) -> Console:
    """Return a console that writes to stdout, or to stderr if ``stderr`` is true."""
    is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if is_terminal else _NEVER_WRAPPED
    kind = _Messages if stderr else Console
    return kind(
        stderr=stderr,
        force_terminal=is_terminal,
        width=width,
        markup=False,
        highlight=is_terminal,
        highlighter=_Reports(),
    )


def print_table(console: Console, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in which quantities, with or without a unit, are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, highlight=console.is_terminal)
    for name, cells in zip(head, zip(*rows, strict=True), strict=True):
        quantities = all(map(_QUANTITY.fullmatch, cells))
        table.add_column(name, justify="right" if quantities else "left", no_wrap=quantities, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def percent(part: float) -> str:
    """Return ``part``, a number from 0 to 1, as a percentage."""
    return f"{100 * part:.1f} %"


def memory(size: int) -> str:
    """Return ``size``, a number of bytes, in the largest unit in which the number is 1 or more."""
    for unit, scale in _UNITS.items():
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size} B"
