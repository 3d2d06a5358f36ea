"""placeholder"""

from __future__ import annotations


def count() -> int | None:
    return None
