"""The part of the program that runs, such as a test: the random orders of a part are the same without the rest."""

from __future__ import annotations

_part = ""


def begin_part(name: str) -> None:
    """Begin a part of the program.

    Args:
        name: The name of the part, such as that of a test. Each name has random orders of its own.
    """
    global _part
    _part = name


def current_part() -> str:
    """Return the name of the part that runs; empty before the first part."""
    return _part
