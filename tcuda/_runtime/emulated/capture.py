"""Stream capture: which streams take part, what each has seen of the others, and what ends or spoils it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED

if TYPE_CHECKING:
    from tcuda._runtime.emulated.timeline import Mark, Timeline

Progress: TypeAlias = "dict[Timeline, int]"
"""How many operations of each stream come before a point of a capture: a vector clock."""


class Capture:
    """The capture that was begun on one stream and spreads to those that wait for its events."""

    def __init__(self, origin: Timeline, mode: int) -> None:
        self.origin = origin
        self.mode = mode
        self.thread = threading.get_ident()
        self.active = True
        self.valid = True
        self.size = 0
        self._seen: dict[Timeline, Progress] = {}
        self._join(origin)

    def forbids_unsafe_calls(self) -> bool:
        """Whether this thread may not synchronize, query or allocate now (``cudaStreamCaptureMode``)."""
        if not self.active:
            return False
        if self.mode == CAPTURE_GLOBAL:
            return True
        return self.mode != CAPTURE_RELAXED and self.thread == threading.get_ident()

    def may_end_here(self) -> bool:
        """Whether this thread may end it."""
        return self.mode == CAPTURE_RELAXED or self.thread == threading.get_ident()

    def add(self, stream: Timeline) -> None:
        """Add one operation to ``stream``, which takes part."""
        self._seen[stream][stream] += 1
        self.size += 1

    def record(self, stream: Timeline, event: Mark) -> None:
        """Let ``event`` stand for what ``stream`` has seen."""
        event.time = None
        event.capture = self
        event.progress = dict(self._seen[stream])

    def wait(self, stream: Timeline, event: Mark) -> None:
        """Let ``stream`` see what ``event`` stands for, which makes it take part if it did not."""
        if stream not in self._seen:
            self._join(stream)
        seen = self._seen[stream]
        for other, count in (event.progress or {}).items():
            seen[other] = max(seen.get(other, 0), count)

    def joined(self) -> bool:
        """Whether the origin has seen all work of every stream that takes part."""
        seen = self._seen[self.origin]
        return all(seen.get(stream, 0) >= own[stream] for stream, own in self._seen.items())

    def end(self) -> None:
        """Release every stream that takes part."""
        self.active = False
        for stream in self._seen:
            stream.capture = None

    def _join(self, stream: Timeline) -> None:
        stream.capture = self
        self._seen[stream] = {stream: 0}
