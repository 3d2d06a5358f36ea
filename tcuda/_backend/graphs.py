"""Launches of graphs on the current stream of an array library."""

from __future__ import annotations

from typing import Protocol


class GraphLauncher(Protocol):
    """Launches one ``cudaGraphExec_t`` on the current stream."""

    @property
    def launched(self) -> bool:
        """Whether :meth:`launch` was called."""

    def launch(self) -> int:
        """Launch the graph and return success.

        If another device is current, or the current stream captures, return the status and do nothing.
        """
