"""What reports about kernels ask a module for: its lines and its variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.rtc.shared_memory import SharedVariable


class SourceFacts(Protocol):
    """A module of kernels, as far as it knows its lines and its variables."""

    def lines(self, offsets: Sequence[int], *, recorded: bool = False) -> list[tuple[str, int] | None]:
        """Return the file and the line of each place in the library, or in the library whose launches note accesses."""

    def excerpt(self, file: str, first: int, last: int) -> list[tuple[int, str]]:
        """Return lines of the source."""

    def global_variables(self) -> Sequence[tuple[str, int, int]]:
        """Return the name, the beginning and the end of each global variable."""

    def shared_variable_at(self, address: int) -> tuple[SharedVariable, int] | None:
        """Return the variable in shared memory at an address, and the address where the variable begins."""
