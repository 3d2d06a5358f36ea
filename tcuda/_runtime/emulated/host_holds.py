"""The page-locked memory of the host that captured operations use."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Range: TypeAlias = tuple[int, int]
"""The address and the size of memory."""


class HostHold:
    """The memory that a captured operation uses, for as long as the object lives.

    Args:
        holds: The ranges of all such objects, by their numbers.
        ranges: The memory.
    """

    def __init__(self, holds: dict[int, tuple[Range, ...]], ranges: Iterable[Range]) -> None:
        self._holds = holds
        holds[id(self)] = tuple(ranges)

    def __del__(self) -> None:
        self._holds.pop(id(self), None)
