"""The trace: the times of all work of emulated devices, on the emulated clock."""

from __future__ import annotations

import bisect
import threading
import time
from typing import TYPE_CHECKING

from tcuda._runtime.protocol import TracedWork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda.emulation.runtime.clock import Clock
    from tcuda.emulation.runtime.graphs import Graph
    from tcuda.emulation.runtime.timeline import Timeline


class EmulatedTrace:
    """A trace of emulated devices, which begins at once.

    Args:
        clock: The clock of the devices.
        follow: Lets a trace hear of all work, or none if it gets None.
    """

    def __init__(self, clock: Clock, follow: Callable[[EmulatedTrace | None], None]) -> None:
        self._clock = clock
        self._follow = follow
        self._found: list[TracedWork] = []
        self._host_times: list[int] = []
        self._moments: list[int] = []
        """The emulated times at ``_host_times``."""
        with clock._lock:
            self._note_time()
            clock._waited = self._host_waits
            follow(self)

    def now(self) -> int:
        """Return the emulated time in nanoseconds."""
        return self._clock.now()

    def moments(self, host_times: Sequence[int]) -> list[int]:
        """Return the emulated times at ``host_times``, which are those of the last work before.

        Args:
            host_times: Times of ``time.time_ns()``.
        """
        return [self._moments[max(bisect.bisect(self._host_times, each) - 1, 0)] for each in host_times]

    def wait(self, devices: Sequence[int]) -> None:
        """Return at once, because the times of work are known before the work is complete."""

    def end(self) -> list[TracedWork]:
        """End the trace, and return what the trace has."""
        with self._clock._lock:
            self._clock._waited = None
            self._follow(None)
        return self._found

    # The caller holds the lock of the runtime.

    def work(self, timeline: Timeline, kind: str, name: str, start: int, end: int, nbytes: int) -> None:
        """Hear of work of a stream."""
        self._note_time()
        self._found.append(TracedWork(kind, name, timeline.device, timeline.handle, start, end, nbytes))

    def stream_waits(self, timeline: Timeline, end: int) -> None:
        """Hear that a stream waits for an event, which is complete at ``end``."""
        start = max(timeline.ready, self._clock.now())
        if end > start:
            self.work(timeline, "wait_event", "wait for an event", start, end, 0)

    def graph(self, timeline: Timeline, graph: Graph, start: int) -> None:
        """Hear that a graph is launched on a stream, and starts at ``start``."""
        for node, (begin, end) in zip(graph.nodes, graph.times(start), strict=True):
            self.work(timeline, node.kind, node.name, begin, end, node.nbytes)

    def _host_waits(self, start: int, end: int) -> None:
        self._note_time()
        self._found.append(TracedWork("wait", "wait", -1, threading.get_native_id(), start, end))

    def _note_time(self) -> None:
        self._host_times.append(time.time_ns())
        self._moments.append(self._clock.now())
