"""Work: how the work of streams is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda.emulation.runtime.graphs import Executable
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.timeline import Timeline


class Work:
    """Does the work of streams at once.

    Args:
        machine: The state of the devices.

    Attributes:
        direct: Whether a call may do work without :meth:`perform`. Small kernels and short graphs save two calls so.
    """

    def __init__(self, machine: Machine) -> None:
        self._races = machine.races
        self.direct = True

    def be_watched(self, watched: bool) -> None:
        """Let a watcher see the work that is done, or no longer."""
        self.direct = not watched

    def perform(self, work: Callable[[], object], timelines: Sequence[Timeline], *, meets: bool = False) -> None:
        """Do ``work`` of ``timelines``, which do not capture.

        Args:
            work: The work.
            timelines: The streams that the work belongs to.
            meets: Whether the work waits for other threads or processes.
        """
        self._races.watcher.do(work)

    def perform_graph(self, executable: Executable, timeline: Timeline) -> None:
        """Do the work of ``executable`` on ``timeline``, which does not capture."""
        self._races.watcher.launching(executable)
        self.perform(executable.run, [timeline])

    def begin_memory(self, work: Callable[[], object], stream: int) -> None:
        """Do ``work`` before all work of ``stream`` on memory that was allocated for the stream."""
        work()
