"""The page-locked memory of the host that captured operations use."""

from __future__ import annotations

from typing import TypeAlias

from tcuda._core import finalizing

Range: TypeAlias = tuple[int, int]
"""The address and the size of memory."""


class HostHold:
    """The memory that a captured operation uses, for as long as the object lives.

    Args:
        living: The numbers of all such objects that live.
        number: The number of the object.
    """

    def __init__(self, living: set[int], number: int) -> None:
        self._living = living
        self._number = number
        living.add(number)

    @finalizing
    def __del__(self) -> None:
        self._living.discard(self._number)
