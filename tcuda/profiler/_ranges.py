"""The ranges and marks of ``tcuda.nvtx`` in a trace."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from tcuda._viz.trace import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._runtime.protocol import Trace
    from tcuda.nvtx import Listener


class TracedRanges:
    """Notes ranges and marks with their times, and passes them on to a profiler.

    Args:
        profiler: Hears of everything, too.

    Attributes:
        profiler: The profiler.
        found: The ranges that are closed, and the marks.
    """

    def __init__(self, profiler: Listener) -> None:
        self.profiler = profiler
        self.found: list[Span] = []
        self._now: Callable[[], int] = time.time_ns
        self._open: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        """The ranges that each thread has opened, with their beginnings; the innermost is last."""
        self._started: dict[int, Span] = {}
        self._numbers = itertools.count(1)

    def follow(self, trace: Trace) -> None:
        """Use the clock of ``trace`` from now on, and move all earlier ranges and marks to that clock."""

        def moved(moment: int) -> int:
            return trace.moments([moment])[0]

        self.found = [span._replace(start=moved(span.start), end=moved(span.end)) for span in self.found]
        for number, span in self._started.copy().items():  # other threads may open ranges
            self._started[number] = span._replace(start=moved(span.start))
        for ranges in self._open.copy().values():
            ranges[:] = [(name, moved(start)) for name, start in ranges]
        self._now = trace.now

    def push(self, msg: str) -> int:
        """Hear that a range is opened inside the innermost range of the thread."""
        self._open[threading.get_ident()].append((msg, self._now()))
        return self.profiler.push(msg)

    def pop(self) -> int:
        """Hear that the innermost range of the thread is closed. A range from before the trace is left out."""
        ranges = self._open[threading.get_ident()]
        if ranges:
            name, start = ranges.pop()
            self.found.append(Span(name, threading.get_native_id(), start, self._now()))
        return self.profiler.pop()

    def start(self, msg: str) -> int:
        """Hear that a range is opened that any thread may close."""
        number = self.profiler.start(msg) or next(self._numbers)
        now = self._now()
        self._started[number] = Span(msg, threading.get_native_id(), now, now)
        return number

    def end(self, range_id: int) -> None:
        """Hear that the range with the number ``range_id``, which :meth:`start` has returned, is closed."""
        started = self._started.pop(range_id, None)
        if started is not None:
            self.found.append(started._replace(end=self._now()))
        self.profiler.end(range_id)

    def mark(self, msg: str) -> None:
        """Hear of a mark."""
        now = self._now()
        self.found.append(Span(msg, threading.get_native_id(), now, now))
        self.profiler.mark(msg)
