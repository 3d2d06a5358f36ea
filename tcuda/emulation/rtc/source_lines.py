"""Stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def source_lines(library: bytes, offsets: Sequence[int]) -> list[tuple[str, int] | None]:
    """Return lines: offsets below 1000 stand for lines."""
    return [("kernel.cu", offset) if 0 < offset < 1000 else None for offset in offsets]
