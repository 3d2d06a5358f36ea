"""The lines of the program that capture the nodes of graphs.

CUDA notes no lines, and CuPy calls the driver without tcuda. So the thread that captures is traced: after each line of
the program, the nodes that the graph has got since belong to this line. A node that another thread captures meanwhile
into the same graph gets the line of this thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._base.line_trace import begin_trace, end_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda._base.line_trace import LineTrace
    from tcuda._base.user_code import Place


class NotedLines:
    """The lines of the nodes of one capture.

    Args:
        stream: The stream on which the capture has begun.
        notes: Notes the nodes; of the protocol of :class:`tcuda._core.NotedNodes`.
    """

    def __init__(self, stream: int, notes: _core.NotedNodes) -> None:
        self.thread = threading.get_ident()
        self.bodies: Sequence[int] = ()
        self._streams = [stream]
        self._notes = notes
        self._lines: list[Place | None] = [None]  # by note; a node without a note has none
        self._trace: LineTrace | None = None

    def begin(self) -> None:
        """Begin to trace this thread. No line is known if another tool traces the thread."""
        self._trace = begin_trace(self._line_ends)

    def end(self) -> None:
        """Note the last line, and end the trace."""
        self.look()
        if self._trace is not None:
            end_trace(self._trace, self._line_ends)

    def begin_body(self, stream: int) -> None:
        """Let ``stream`` capture the body of a node of the capture."""
        if stream not in self._streams:
            self._streams.append(stream)

    def look(self) -> None:
        """Give the line that runs to the nodes that are new, if the line is known."""
        if self._trace is not None and self._trace.is_running():
            self._line_ends()

    def _line_ends(self) -> None:
        assert self._trace is not None
        number = len(self._lines)
        if sum([self._notes.note(stream, number) for stream in self._streams]):
            self._lines.append(self._trace.place())

    def of(self, graph: int) -> list[Place | None]:
        """Return the lines of the nodes of ``graph``, in the order of the driver."""
        return [self._lines[note] for note in self._notes.notes_of(graph)[1]]


class CapturedLines:
    """The lines of all captures and of all graphs whose lines are known.

    Args:
        notes: Makes the notes of a capture.
    """

    def __init__(self, notes: Callable[[], _core.NotedNodes] = _core.NotedNodes) -> None:
        self._notes = notes
        self._open: dict[int, NotedLines] = {}
        """The captures in progress, by the stream on which each has begun."""
        self._known: dict[int, NotedLines] = {}
        """By graph, also the graphs of bodies."""

    def begin(self, stream: int) -> None:
        """Record the lines of the capture that ``stream`` has begun."""
        self.end(stream)  # the capture before may have been abandoned
        lines = NotedLines(stream, self._notes())
        self._open[stream] = lines
        lines.begin()

    def end(self, stream: int) -> NotedLines | None:
        """End the records of the capture that ``stream`` has begun, and return them; None without records."""
        lines = self._open.pop(stream, None) if self._open else None
        if lines is not None:
            lines.end()
        return lines

    def begin_body(self, stream: int) -> None:
        """Let ``stream`` capture the body of a node of the last capture that this thread has begun."""
        own = [lines for lines in self._open.values() if lines.thread == threading.get_ident()]
        if own:
            own[-1].begin_body(stream)

    def look(self) -> None:
        """Give the line that runs to the nodes that are new in the captures of this thread."""
        for lines in list(self._open.values()):
            if lines.thread == threading.get_ident():
                lines.look()

    def keep(self, graph: int, bodies: Sequence[int], lines: NotedLines) -> None:
        """Keep ``lines`` as those of ``graph`` and of the bodies of its conditional nodes."""
        lines.bodies = tuple(bodies)
        self._known.update(dict.fromkeys((graph, *bodies), lines))

    def of(self, graph: int, count: int) -> list[Place | None]:
        """Return the lines of the ``count`` nodes of ``graph``; None for each line that is not known."""
        lines = self._known.get(graph)
        return [None] * count if lines is None else lines.of(graph)

    def forget(self, graph: int) -> None:
        """Forget the lines of ``graph`` and of the bodies of its nodes."""
        lines = self._known.pop(graph, None) if self._known else None
        for body in () if lines is None else lines.bodies:
            self._known.pop(body, None)
