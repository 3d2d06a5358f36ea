"""Stream capture: which streams take part, what each has seen of the others, and what ends or spoils it."""

from __future__ import annotations

import threading
from typing import TypeAlias

from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED

Progress: TypeAlias = dict[int, int]
"""How many operations of each stream come before a point of a capture: a vector clock."""


class Capture:
    """The capture that was begun on one stream and spreads to those that wait for its events.

    Streams are named by their handles.

    Attributes:
        origin: The stream on which it was begun.
        device: The device of that stream.
        active: Whether it has not ended.
        valid: Whether nothing has spoiled it.
    """

    def __init__(self, origin: int, device: int, mode: int) -> None:
        self.origin = origin
        self.device = device
        self.active = True
        self.valid = True
        self._mode = mode
        self._thread = threading.get_ident()
        self._seen: dict[int, Progress] = {origin: {origin: 0}}

    def forbids_unsafe_calls(self) -> bool:
        """Whether this thread may not synchronize, query or allocate now (``cudaStreamCaptureMode``)."""
        if not self.active:
            return False
        if self._mode == CAPTURE_GLOBAL:
            return True
        return self._mode != CAPTURE_RELAXED and self._thread == threading.get_ident()

    def may_end_here(self) -> bool:
        """Whether this thread may end it."""
        return self._mode == CAPTURE_RELAXED or self._thread == threading.get_ident()

    def add(self, stream: int) -> None:
        """Add one operation to ``stream``, which takes part."""
        self._seen[stream][stream] += 1

    def seen_by(self, stream: int) -> Progress:
        """Return what ``stream``, which takes part, has seen so far."""
        return dict(self._seen[stream])

    def wait(self, stream: int, progress: Progress) -> None:
        """Let ``stream`` see ``progress``, which makes it take part if it did not."""
        seen = self._seen.setdefault(stream, {stream: 0})
        for other, count in progress.items():
            seen[other] = max(seen.get(other, 0), count)

    def joined(self) -> bool:
        """Whether the origin has seen all work of every stream that takes part."""
        seen = self._seen[self.origin]
        return all(seen.get(stream, 0) >= own[stream] for stream, own in self._seen.items())
