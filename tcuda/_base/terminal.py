"""A line on the terminal that says what takes long, and that goes away when the work is done."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLEAR = "\r\x1b[K"  # the start of the line, and away with its rest


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show the present work on stderr during the block, if stderr is a terminal.

    Args:
        text: The work, such as ``"reading snapshot.pickle"``.
    """
    screen = sys.stderr
    columns = _columns(screen)
    if columns == 0:
        yield
        return
    line = f"{' '.join(text.split())} ..."
    _write(screen, _CLEAR + line[: columns - 1])  # a line that wraps would not go away as a whole
    try:
        yield
    finally:
        _write(screen, _CLEAR)


def _columns(screen: TextIO | None) -> int:
    """Return the width of the terminal; 0 if ``screen`` is no terminal that can clear a line."""
    try:
        if screen is None or not screen.isatty() or os.environ.get("TERM", "dumb") == "dumb":
            return 0
        return os.get_terminal_size(screen.fileno()).columns or 80
    except (OSError, ValueError):  # a closed file, or a file of the program without a descriptor
        return 0


def _write(screen: TextIO, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal may be gone; the work goes on
        screen.write(text)
        screen.flush()
