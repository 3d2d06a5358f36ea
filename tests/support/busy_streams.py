"""Streams that are kept busy."""

from __future__ import annotations

import tcuda

LONG = 100_000_000
"""Clock cycles of a kernel that outlasts the work of a test on the host."""


def keep_busy(stream: tcuda.Stream, cycles: int = LONG) -> None:
    """Let ``stream`` run a kernel that does nothing for ``cycles`` clock cycles."""
    with tcuda.stream(stream):
        tcuda._sleep(cycles)
