"""Errors of the user, and texts of other programs, in one line of a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WITHOUT_GPU = (
    "set TCUDA_RUNTIME=emulated or call tcuda.emulation.enable() first. A program that says 'import cupy' runs by: "
    "tcuda run PROGRAM"
)
"""The end of a message: the ways to run a program without a GPU."""


def in_one_line(error: Exception) -> str | None:
    """Return a message of one line for ``error``; None if ``error`` comes from a bug in tcuda."""
    if isinstance(error, MemoryError):
        text = str(error) or "There is not enough memory."
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.strerror}: {str(error.filename)!r}"
    elif isinstance(error, OSError | RuntimeError | ValueError):
        text = str(error)
    else:
        return None
    return printable(text)


def printable(text: str) -> str:
    """Return ``text`` in one line, without characters that control a terminal, as names of files may have."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in " ".join(text.split()))


def similar(word: str, known: Iterable[str]) -> str:
    """Return a question that names the word of ``known`` that is most like ``word``; nothing if none is."""
    import difflib  # here, because few programs have a mistyped word

    found = difflib.get_close_matches(word, known, n=1)
    return f" Did you mean {found[0]}?" if found else ""


def send_to_nowhere(descriptor: int) -> None:
    """Send the output of a file, whose reader is gone, to nowhere.

    Python flushes stdout and stderr at exit, and would report another failure in many lines.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


__all__ = ["WITHOUT_GPU", "in_one_line", "printable", "send_to_nowhere", "similar"]
