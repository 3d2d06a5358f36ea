"""Measurement of the phases of the training, by the clocks of the devices."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator


class Phases:
    """Adds up the time between pairs of events.

    The measurement makes neither the program nor a device wait: an event is a mark in the stream, and :meth:`collect`
    reads the events when the epoch is over.

    Attributes:
        milliseconds: The time of every phase, up to the last call of :meth:`collect`.
    """

    def __init__(self) -> None:
        self.milliseconds: defaultdict[str, float] = defaultdict(float)
        self._marks: list[tuple[str, tcuda.Event, tcuda.Event]] = []

    @contextlib.contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Add the time of the work that the scope puts on the current stream to ``phase``."""
        start, end = tcuda.Event(enable_timing=True), tcuda.Event(enable_timing=True)
        start.record()
        yield
        end.record()
        self._marks.append((phase, start, end))

    def collect(self) -> None:
        """Wait for the measured work and add up its times."""
        for phase, start, end in self._marks:
            end.synchronize()
            self.milliseconds[phase] += start.elapsed_time(end)
        self._marks.clear()
