"""The watcher: what the calls of emulated devices report, so that somebody may follow what a program does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda.emulation.runtime.accesses import Accesses
    from tcuda.emulation.runtime.events import Event
    from tcuda.emulation.runtime.graphs import Executable, Node
    from tcuda.emulation.runtime.timeline import Timeline


class Watcher:
    """Hears of everything that a program does with emulated devices. This class follows nothing.

    The caller holds the lock of the runtime, except for :meth:`work` and :meth:`work_together`.

    Attributes:
        follows: Whether the watcher needs the accesses of work and the sizes of blocks, which take long to find.
    """

    __slots__ = ()

    follows = False

    def end(self) -> None:
        """Hear that nothing is reported any more."""

    # Streams

    def created(self, timeline: Timeline) -> None:
        """Hear that a stream is created."""

    def destroyed(self, timeline: Timeline) -> None:
        """Hear that a stream is destroyed."""

    def finished(self, timeline: Timeline) -> None:
        """Hear that the host knows that a stream is idle, from a synchronisation or a successful query."""

    def device_finished(self, device: int) -> None:
        """Hear that the host knows that a device is idle."""

    # Events

    def recorded(self, event: Event, timeline: Timeline) -> None:
        """Hear that an event is recorded on a stream."""

    def waited(self, event: Event, timeline: Timeline) -> None:
        """Hear that a stream waits for the last record of an event."""

    def completed(self, event: Event) -> None:
        """Hear that the host knows that an event is complete, from a synchronisation or a successful query."""

    def event_destroyed(self, event: Event) -> None:
        """Hear that an event is destroyed."""

    # Events of the allocator, which are numbers

    def numbered(self, timeline: Timeline) -> int:
        """Hear that the allocator records an event on a stream, and return the event; 0 if any number will do."""
        return 0

    def number_completed(self, event: int) -> None:
        """Hear that the allocator knows that one of its events is complete."""

    def number_destroyed(self, event: int) -> None:
        """Hear that the allocator forgets one of its events."""

    # Work

    def stack(self) -> int:
        """Return a number for the Python stack of a call that a capture keeps; 0 if nobody needs the stack."""
        return 0

    def do(self, work: Callable[[], object]) -> None:
        """Do the work of an operation."""
        work()

    def work(self, timeline: Timeline, name: str, accesses: Accesses) -> None:
        """Hear of an operation on a stream."""

    def work_together(self, timelines: Sequence[Timeline], name: str, accesses: Accesses) -> None:
        """Hear of one operation on several streams that wait for each other."""

    def moved(self, timelines: Sequence[Timeline], node: Node) -> None:
        """Hear of a copy or a memset.

        Args:
            timelines: The streams that the operation waits for, and that wait for the operation.
            node: The operation.
        """

    def launching(self, executable: Executable) -> None:
        """Hear that the work of a graph is done next."""

    def launched(self, executable: Executable, timeline: Timeline) -> None:
        """Hear that a graph is launched on a stream."""

    def changed(self, executable: Executable) -> None:
        """Hear that a graph does other work from now on."""

    # Memory that no ledger has

    def allocated(self, address: int, size: int, device: int, stream: int) -> None:
        """Hear of memory that the program has taken from the driver."""

    def freed(self, address: int, size: int, timeline: Timeline | None = None) -> None:
        """Hear that the program gives memory back to the driver.

        Args:
            address: The address.
            size: The size in bytes.
            timeline: The stream whose work comes before the driver takes the memory; None if the device is idle.
        """

    def returned(self, address: int, size: int, device: int, stream: int) -> None:
        """Hear that the allocator gives memory back to the driver, in the order of a stream."""

    def unmapped(self, address: int, size: int) -> None:
        """Hear that devices cannot reach memory any more: memory of the host, or of another process."""

    # Page-locked memory

    def registered(self, address: int, size: int) -> None:
        """Hear that memory of the host is page-locked from now on."""

    def unregistered(self, address: int, size: int) -> None:
        """Hear that memory of the host is not page-locked any more."""
