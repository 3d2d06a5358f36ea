"""The contents of memory, as far as somebody looks for uses of bytes that no work has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcuda.emulation.runtime.unwritten import Unwritten


class Contents:
    """Knows which bytes no work has written, while somebody wants to know.

    Attributes:
        unwritten: The unwritten bytes; None while nobody wants to know.
        watched: The object ``unwritten`` if there is one, for the core, which asks whether the list is empty.
    """

    __slots__ = ("unwritten", "watched")

    def __init__(self) -> None:
        self.unwritten: Unwritten | None = None
        self.watched: list[Unwritten] = []

    def watch(self, wanted: bool) -> None:
        """Begin with all memory that is allocated from now on, or end."""
        from tcuda.emulation.runtime.unwritten import Unwritten  # here, because the module imports NumPy

        self.unwritten = Unwritten() if wanted else None
        self.watched[:] = [] if self.unwritten is None else [self.unwritten]
