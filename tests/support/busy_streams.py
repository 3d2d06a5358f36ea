"""Streams that are kept busy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.streams import StreamLike

LONG = 400_000_000
"""Clock cycles of a kernel that outlasts the work of a test on the host."""


_SHORT = 1_000_000
"""Clock cycles of a kernel that outlasts copies of a few kilobytes, and is much shorter than one of ``LONG``."""


def let_pass(stream: tcuda.Stream) -> None:
    """Let time pass, by work of ``stream``: other streams finish their short work, and not the kernel of ``LONG``."""
    keep_busy(stream, _SHORT)
    stream.synchronize()


def each_busy(*streams: tcuda.Stream) -> Iterator[tcuda.Stream]:
    """Yield each of ``streams`` when this stream is busy, and the devices of all ``streams`` have no other work."""
    for busy in streams:
        for stream in streams:
            tcuda.synchronize(stream.device_index)
        keep_busy(busy)
        yield busy


def keep_busy(stream: StreamLike, cycles: int = LONG) -> None:
    """Let ``stream``, of any library, run a kernel that does nothing for ``cycles`` clock cycles."""
    with tcuda.stream(stream):
        tcuda._sleep(cycles)
