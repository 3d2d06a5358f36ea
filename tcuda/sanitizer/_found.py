"""A race as its finder describes the race: the detector of streams, or a launch of a kernel."""

from __future__ import annotations

from typing import Protocol


class _FoundAccess(Protocol):
    @property
    def confidence(self) -> str: ...


class FoundRace(Protocol):
    """A race as its finder describes the race: the detector of streams, or a launch of a kernel."""

    @property
    def current(self) -> _FoundAccess:
        """The later access."""

    @property
    def previous(self) -> _FoundAccess:
        """The earlier access."""

    @property
    def overlap(self) -> tuple[int, int]:
        """The address of the first common byte, and the number of bytes."""

    @property
    def count(self) -> int:
        """How often the finder has found the race."""
