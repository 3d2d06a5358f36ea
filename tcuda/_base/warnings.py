"""Warnings that point to the code of the program."""

from __future__ import annotations

import sys


def stacklevel(*packages: str) -> int:
    """Return the ``stacklevel`` that makes a warning of the caller point to the code that called this package.

    Args:
        *packages: Other packages or modules, which do not count as the code that called.
    """
    inner = tuple(f"{package}." for package in ("tcuda", *packages))
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(inner):
        level, frame = level + 1, frame.f_back
    return level
