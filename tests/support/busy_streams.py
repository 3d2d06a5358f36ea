"""Streams that are kept busy."""

from __future__ import annotations

import tcuda

LONG = 100_000_000
"""More clock cycles than a test takes on the host."""


def keep_busy(stream: tcuda.Stream, cycles: int = LONG) -> None:
    """Let a stream run a kernel that does nothing for so many clock cycles."""
    with tcuda.stream(stream):
        tcuda._sleep(cycles)
