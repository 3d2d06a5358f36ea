"""Stream capture: which streams take part, what each waits for, and what ends or spoils it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tcuda._runtime.emulated.graph import Graph, Places
from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED

if TYPE_CHECKING:
    from tcuda._runtime.emulated.graph import Node


class Capture:
    """The capture that was begun on one stream and spreads to those that wait for its events.

    Streams are named by their handles.

    Attributes:
        number: Tells it from every other capture; not 0.
        origin: The stream on which it was begun.
        device: The device of that stream.
        active: Whether it has not ended.
        valid: Whether nothing has spoiled it.
        graph: What was captured so far.
    """

    def __init__(self, number: int, origin: int, device: int, mode: int) -> None:
        self.number = number
        self.origin = origin
        self.device = device
        self.active = True
        self.valid = True
        self.graph = Graph(number)
        self._mode = mode
        self._thread = threading.get_ident()
        self._last: dict[int, Places] = {origin: frozenset()}  # what the next operation on each stream waits for

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

    def add(self, stream: int, node: Node) -> None:
        """Add ``node`` to ``stream``, which takes part."""
        self._last[stream] = frozenset([self.graph.add(node, self._last[stream])])

    def seen_by(self, stream: int) -> Places:
        """Return the nodes that an event recorded on ``stream``, which takes part, stands for now."""
        return self._last[stream]

    def wait(self, stream: int, places: Places) -> None:
        """Let ``stream`` wait for the nodes at ``places``, which makes it take part if it did not."""
        self._last[stream] = self._last.get(stream, frozenset()) | places

    def joined(self) -> bool:
        """Whether the origin waits for all work of every stream that takes part."""
        return len(self.graph.up_to(self._last[self.origin])) == len(self.graph.nodes)
