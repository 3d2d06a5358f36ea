"""Captures: the streams that take part, the nodes that each of them waits for, and the calls that captures forbid."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda._base.user_code import calling_place
from tcuda._core import note_stack
from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.graphs import Graph, Places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda._base.errors import AcceleratorError
    from tcuda._base.user_code import Place
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.graphs import Node


class Capture:
    """A capture, which begins on one stream and spreads to the streams that wait for its events.

    Streams are named by their handles.

    Args:
        number: The number of the capture, which no other capture has; not 0.
        origin: The stream on which the capture begins.
        device: The device of that stream.
        mode: The ``CAPTURE_...`` mode.
        body: The graph of the body of a conditional node, into which the operations go; None for a graph of their own.
        body_handle: The handle of ``body``.

    Attributes:
        number: The number of the capture.
        origin: The stream on which the capture began.
        device: The device of that stream.
        active: Whether the capture has not ended.
        valid: Whether no call has invalidated the capture.
        graph: The graph of the operations that were captured so far.
        body_handle: The handle of the graph if the graph is the body of a conditional node; 0 for another graph.
        lines: Whether each node notes its Python stack.
    """

    lines = False

    def __init__(
        self, number: int, origin: int, device: int, mode: int, body: Graph | None = None, body_handle: int = 0
    ) -> None:
        self.number = number
        self.origin = origin
        self.device = device
        self.active = True
        self.valid = True
        self.graph = Graph(number) if body is None else body
        self.body_handle = body_handle
        self._mode = mode
        self._thread = threading.get_ident()
        self._last: dict[int, Places] = {origin: frozenset()}
        """For each stream, the nodes that the next operation on the stream waits for."""
        self._places: dict[int, Place | None] = {}
        """For each stream but the origin, the line of the program that made its last operation."""

    def forbids_unsafe_calls(self) -> bool:
        """Return whether this thread may not synchronize, query or allocate now (``cudaStreamCaptureMode``)."""
        if not self.active:
            return False
        if self._mode == CAPTURE_GLOBAL:
            return True
        return self._mode != CAPTURE_RELAXED and self._thread == threading.get_ident()

    def may_end_here(self) -> bool:
        """Return whether this thread may end the capture."""
        return self._mode == CAPTURE_RELAXED or self._thread == threading.get_ident()

    def add(self, stream: int, node: Node) -> None:
        """Add ``node`` to ``stream``, which takes part."""
        self._note_stack(node)
        self._last[stream] = frozenset([self.graph.add(node, self._last[stream])])
        self._note_place(stream)

    def add_together(self, streams: Sequence[int], node: Node) -> None:
        """Add ``node`` to ``streams``, which take part: the node waits for all of them, and all wait for the node."""
        self._note_stack(node)
        places = frozenset([self.graph.add(node, frozenset().union(*(self._last[stream] for stream in streams)))])
        for stream in streams:
            self._last[stream] = places
            self._note_place(stream)

    def _note_stack(self, node: Node) -> None:
        if self.lines and not node.stack:
            node.stack = note_stack()

    def _note_place(self, stream: int) -> None:
        if stream != self.origin:
            self._places[stream] = calling_place()

    def seen_by(self, stream: int) -> Places:
        """Return the nodes that an event stands for if it is recorded now on ``stream``, which takes part."""
        return self._last[stream]

    def wait(self, stream: int, places: Places) -> None:
        """Let ``stream`` take part and wait for the nodes at ``places``."""
        self._last[stream] = self._last.get(stream, frozenset()) | places

    def streams(self) -> list[int]:
        """Return the streams that take part, and those that took part until they were destroyed."""
        return list(self._last)

    def unjoined(self) -> dict[int, Place | None]:
        """Return the streams for whose work the origin does not wait, each with the line of its last operation."""
        waited_for = self.graph.up_to(self._last[self.origin])
        if len(waited_for) == len(self.graph.nodes):
            return {}
        return {stream: place for stream, place in self._places.items() if not self._last[stream] <= waited_for}

    def drop_graph(self) -> None:
        """Forget the graph of this capture, which has ended; events that were recorded in the capture may live on."""
        self.graph = Graph(self.number)

    def invalidate(self, call: Call, status: int = Status.STREAM_CAPTURE_UNSUPPORTED) -> AcceleratorError:
        """Invalidate the capture, and return the error for ``call``, which the capture forbids."""
        self.valid = False
        return failure(status, call)


class Captures:
    """The captures of all threads.

    Attributes:
        in_progress: The captures that have begun and not ended. The list is empty nearly always, and so most calls look
            no further. The calls keep this list, which stays the same object.
    """

    def __init__(self) -> None:
        self.in_progress: list[Capture] = []
        self._numbers = itertools.count(1)

    def new(self, origin: int, device: int, mode: int, body: Graph | None = None, body_handle: int = 0) -> Capture:
        """Return a capture that is not in progress yet; the arguments are those of :class:`Capture`."""
        return Capture(next(self._numbers), origin, device, mode, body, body_handle)

    def new_body(self) -> Graph:
        """Return the graph of the body of a conditional node."""
        return Graph(next(self._numbers))

    def forbid_unsafe(self, call: Call) -> None:
        """Refuse ``call``, which synchronizes, queries or allocates, if a capture forbids such calls in this thread.

        Raises:
            AcceleratorError: A capture forbids the call, which invalidates the capture (900).
        """
        for capture in self.in_progress:
            if capture.forbids_unsafe_calls():
                raise capture.invalidate(call)
