"""Work that one stream hands to another, for tests of libraries that share streams and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tcuda
from support.busy_streams import keep_busy

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1 << 16
"""The number of elements of the arrays. A copy of them is much shorter than the work of a busy stream."""


def arrays() -> tuple[Any, Any]:
    """Return two arrays of float32 that hold 0, after the kernels of the exchange were compiled."""
    xp = tcuda.xp
    source, target = xp.zeros(SIZE, dtype="float32"), xp.zeros(SIZE, dtype="float32")
    source.fill(1)  # a kernel, and not a fill with zeros; to load a kernel would wait for a busy stream
    source.fill(0)
    xp.add(source, 0, out=target)
    float(target.min())
    keep_busy(tcuda.Stream(), 1)
    tcuda.synchronize()
    return source, target


def write_late(stream: Any, source: Any) -> None:
    """Let ``stream``, of any library, be busy for long, and then write 1 to all elements of ``source``."""
    keep_busy(stream)
    with tcuda.stream(stream):
        source.fill(1)


def handed_over(writing: Any, reading: Any, order: Callable[[], object]) -> float:
    """Return the smallest element that ``reading`` reads of an array that ``writing`` changes from 0 to 1.

    Args:
        writing: The stream that writes late, of any library.
        reading: The stream that copies the array, of any library.
        order: The call that lets ``reading`` wait for ``writing``. The call must return before ``writing`` has written.
    """
    source, target = arrays()
    write_late(writing, source)
    written = tcuda.Event()
    written.record(writing)
    order()
    with tcuda.stream(reading):
        tcuda.xp.add(source, 0, out=target)
    assert not written.query(), "the call let the program wait"
    tcuda.synchronize()
    return float(target.min())
