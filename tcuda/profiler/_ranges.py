"""The ranges and marks of ``tcuda.nvtx`` in a trace."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from tcuda._viz.trace import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.nvtx import Listener


class _Open(threading.local):
    """The ranges that a thread has opened, with their beginnings; the innermost is last."""

    def __init__(self) -> None:
        self.ranges: list[tuple[str, int]] = []


class TracedRanges:
    """Notes ranges and marks with their times, and passes them on to a profiler.

    Args:
        profiler: Hears of everything, too.
        now: Returns the time in nanoseconds.

    Attributes:
        found: The ranges that are closed, and the marks.
    """

    def __init__(self, profiler: Listener, now: Callable[[], int]) -> None:
        self.profiler = profiler
        self.found: list[Span] = []
        self._now = now
        self._open = _Open()
        self._started: dict[int, Span] = {}
        self._numbers = itertools.count(1)

    def push(self, msg: str) -> int:
        """Hear that a range is opened inside the innermost range of the thread."""
        self._open.ranges.append((msg, self._now()))
        return self.profiler.push(msg)

    def pop(self) -> int:
        """Hear that the innermost range of the thread is closed; a range from before the trace is not known."""
        if self._open.ranges:
            name, start = self._open.ranges.pop()
            self.found.append(Span(name, threading.get_native_id(), start, self._now()))
        return self.profiler.pop()

    def start(self, msg: str) -> int:
        """Hear that a range is opened that any thread may close."""
        number = self.profiler.start(msg) or next(self._numbers)
        now = self._now()
        self._started[number] = Span(msg, threading.get_native_id(), now, now)
        return number

    def end(self, range_id: int) -> None:
        """Hear that a range of :meth:`start` is closed."""
        started = self._started.pop(range_id, None)
        if started is not None:
            self.found.append(started._replace(end=self._now()))
        self.profiler.end(range_id)

    def mark(self, msg: str) -> None:
        """Hear of a mark."""
        now = self._now()
        self.found.append(Span(msg, threading.get_native_id(), now, now))
        self.profiler.mark(msg)
