"""How long each phase of the training takes, on the devices' own clocks."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator


class Phases:
    """Adds up the time between pairs of events.

    Nothing waits while the work is measured: an event is a mark in the stream, and is read when the epoch is over.

    Attributes:
        milliseconds: The time of every phase, as far as :meth:`collect` has read it.
    """

    def __init__(self) -> None:
        self.milliseconds: defaultdict[str, float] = defaultdict(float)
        self._marks: list[tuple[str, tcuda.Event, tcuda.Event]] = []

    @contextlib.contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Count what the block gives to the current stream as part of ``phase``."""
        start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        start.record()
        yield
        end.record()
        self._marks.append((phase, start, end))

    def collect(self) -> None:
        """Wait for what was measured and add it up."""
        for phase, start, end in self._marks:
            end.synchronize()
            self.milliseconds[phase] += start.elapsed_time(end)
        self._marks.clear()
