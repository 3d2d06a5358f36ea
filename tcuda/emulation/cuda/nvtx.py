"""Marks and ranges for a profiler (``cupy.cuda.nvtx``)."""

from __future__ import annotations

from tcuda import nvtx

available = True


def Mark(message: str, id_color: int = -1) -> None:
    """Mark the present moment with ``message``."""
    nvtx.mark(message)


def MarkC(message: str, color: int = 0) -> None:
    """Mark the present moment with ``message``."""
    nvtx.mark(message)


def RangePush(message: str, id_color: int = -1) -> None:
    """Begin a range in the range that this thread is in."""
    nvtx.range_push(message)


def RangePushC(message: str, color: int = 0) -> None:
    """Begin a range in the range that this thread is in."""
    nvtx.range_push(message)


def RangePop() -> None:
    """End the range that this thread has begun last."""
    nvtx.range_pop()


def RangeStart(message: str, id_color: int = -1) -> int:
    """Begin a range that any thread may end, and return its number."""
    return nvtx.range_start(message)


def RangeEnd(range_id: int) -> None:
    """End the range that :func:`RangeStart` has begun."""
    nvtx.range_end(range_id)
