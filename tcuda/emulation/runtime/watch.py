"""The watch: a race detector learns of the streams, events, graphs and memory of emulated devices."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from tcuda import _core
from tcuda.emulation.runtime.accesses import WRITE, listed, span
from tcuda.emulation.runtime.conditionals import ConditionalNode, note_accesses
from tcuda.emulation.runtime.events import ExternalRecord, ExternalWait
from tcuda.emulation.runtime.shared_events import SharedEvent
from tcuda.emulation.runtime.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcuda.emulation.runtime.accesses import Access, Accesses
    from tcuda.emulation.runtime.events import Event
    from tcuda.emulation.runtime.graphs import Executable, Graph, Node
    from tcuda.emulation.runtime.handles import Handles
    from tcuda.emulation.runtime.streams import Streams
    from tcuda.emulation.runtime.timeline import Timeline
    from tcuda.emulation.runtime.trace import EmulatedTrace


FIRST_NUMBER = 2**62
"""The first event of the allocator that a race detector knows. No time of the clock and no handle is as large."""

_numbers = itertools.count(FIRST_NUMBER)


class WatchedGraph(NamedTuple):
    """An executable graph, as a detector knows the graph.

    Attributes:
        graph: The graph of the detector.
        waits: The events that external nodes of the graph wait for.
        records: The events that external nodes of the graph record.
        measured: The nodes whose accesses only a launch tells, with their places.
    """

    graph: _core.RaceGraph
    waits: list[Event]
    records: list[Event]
    measured: list[tuple[int, Callable[[], Sequence[Access]]]]


class Watch:
    """Who follows what a program does with emulated devices: nobody, a race detector, a trace, or both.

    Args:
        streams: The streams of all devices.
        handles: Gives the handles of streams and events.

    Attributes:
        watcher: Hears of what the program does, from the calls.
        detector: The detector; None while no detector watches.
        trace: The trace that is made; None while none is.
        followers: The detector and the trace, for the core, which asks whether the list is empty.
    """

    __slots__ = ("_handles", "_streams", "detector", "followers", "trace", "watcher")

    def __init__(self, streams: Streams, handles: Handles) -> None:
        self.watcher = Watcher()
        self.detector: _core.RaceDetector | None = None
        self.trace: EmulatedTrace | None = None
        self.followers: list[object] = []
        self._streams = streams
        self._handles = handles

    def begin(self, detector: _core.RaceDetector | None, page_locked: Mapping[int, int]) -> None:
        """Report to ``detector`` every stream that exists, and everything from now on; None ends the watch.

        Args:
            detector: The detector.
            page_locked: The size of each range of the host's memory that is page-locked, by address.
        """
        self.watcher.end()
        watcher = Watcher()
        if detector is not None:
            watcher = RaceWatcher(detector, self._streams, self._handles, page_locked)
        self.detector = detector
        self.watcher = watcher
        self._list_followers()

    def make_trace(self, trace: EmulatedTrace | None) -> None:
        """Report the times of all work to ``trace`` from now on; None ends that."""
        self.trace = trace
        self._list_followers()

    def _list_followers(self) -> None:
        self.followers[:] = [each for each in (self.detector, self.trace) if each is not None]


class RaceWatcher(Watcher):
    """Reports to a race detector everything that a program does with emulated devices.

    Args:
        detector: The detector, which hears at once of the streams and of the page-locked memory.
        streams: The streams of all devices.
        handles: Gives the handles of streams and events.
        page_locked: The size of each range of the host's memory that is page-locked, by address.
    """

    __slots__ = ("_detector", "_graphs", "_handles", "_others", "_page_locked", "_streams")

    follows = True

    def __init__(
        self, detector: _core.RaceDetector, streams: Streams, handles: Handles, page_locked: Mapping[int, int]
    ) -> None:
        self._detector = detector
        self._streams = streams
        self._handles = handles
        self._graphs: WeakKeyDictionary[Executable, WatchedGraph] = WeakKeyDictionary()
        """The executable graphs that the detector knows."""
        self._page_locked = bool(page_locked)
        """Whether the detector may watch page-locked memory."""
        self._others: tuple[int, int] | None = None
        """A stream and an event that stand for all other processes, as far as they use shared events."""
        for address, size in page_locked.items():
            detector.host_registered(address, size)
        detector.watch_host()
        for timeline in list(streams.created.values()):
            self.created(timeline)

    def end(self) -> None:
        """Let the detector look at the host's memory no more."""
        self._detector.end_watch_of_host()

    # Streams

    def created(self, timeline: Timeline) -> None:
        """Report that a stream is created."""
        self._detector.stream_created(timeline.device, timeline.handle, timeline.blocking)

    def destroyed(self, timeline: Timeline) -> None:
        """Report that a stream is destroyed."""
        self._detector.stream_destroyed(timeline.device, timeline.handle)

    def finished(self, timeline: Timeline) -> None:
        """Report that the host knows that a stream is idle."""
        self._detector.stream_synchronized(timeline.device, timeline.handle)

    def device_finished(self, device: int) -> None:
        """Report that the host knows that a device is idle."""
        self._detector.device_synchronized(device)

    # Events

    def recorded(self, event: Event, timeline: Timeline) -> None:
        """Report that an event is recorded on a stream."""
        self._detector.event_recorded(event.handle, timeline.device, timeline.handle)
        if event.interprocess:
            stream, _ = self._other_processes()
            self._detector.event_waited(event.handle, 0, stream)

    def waited(self, event: Event, timeline: Timeline) -> None:
        """Report that a stream waits for the last record of an event."""
        self._detector.event_waited(self._known(event), timeline.device, timeline.handle)

    def completed(self, event: Event) -> None:
        """Report that the host knows that an event is complete."""
        self._detector.event_synchronized(self._known(event))

    def event_destroyed(self, event: Event) -> None:
        """Report that an event is destroyed."""
        self._detector.event_destroyed(event.handle)

    def _known(self, event: Event) -> int:
        """Return the event that the detector knows in the place of ``event``.

        The work of another process cannot be seen. If another process has made the last record of a shared event, that
        process may have waited for every shared event of this process before. So the record stands for all of these:
        no right program is accused, and some missing waits between processes are not found.
        """
        if not (isinstance(event, SharedEvent) and event.is_foreign()):
            return event.handle
        stream, met = self._other_processes()
        self._detector.event_recorded(met, 0, stream)
        return met

    def _other_processes(self) -> tuple[int, int]:
        if self._others is None:
            self._others = self._handles.new(), self._handles.new()
            self._detector.stream_created(0, self._others[0], False)
        return self._others

    # Events of the allocator

    def numbered(self, timeline: Timeline) -> int:
        """Report that the allocator records an event on a stream, and return a number that no other event has."""
        event = next(_numbers)
        self._detector.event_recorded(event, timeline.device, timeline.handle)
        return event

    def number_completed(self, event: int) -> None:
        """Report that the allocator knows that ``event`` is complete, and may hand the memory out again."""
        self._detector.event_synchronized(event)

    def number_destroyed(self, event: int) -> None:
        """Report that the allocator forgets ``event``."""
        self._detector.event_destroyed(event)

    # Work

    def stack(self) -> int:
        """Return the number that the detector gives to the Python stack of the caller."""
        return self._detector.note_stack()

    def do(self, work: Callable[[], object]) -> None:
        """Do the work of an operation, which may use memory of the host that is watched."""
        if not self._page_locked:
            work()
            return
        with _core.PauseOfWatch():
            work()

    def work(self, timeline: Timeline, name: str, accesses: Accesses) -> None:
        """Report an operation on a stream."""
        self._detector.work(timeline.device, timeline.handle, name, listed(accesses))

    def work_together(self, timelines: Sequence[Timeline], name: str, accesses: Accesses) -> None:
        """Report one operation on several streams that wait for each other."""
        streams = [(timeline.device, timeline.handle) for timeline in timelines]
        self._detector.work_together(streams, name, listed(accesses))

    def moved(self, timelines: Sequence[Timeline], node: Node) -> None:
        """Report a copy or a memset."""
        if len(timelines) > 1:
            self.work_together(timelines, node.name, node.accesses)
        else:
            self.work(timelines[0], node.name, node.accesses)

    def launching(self, executable: Executable) -> None:
        """Let the conditional nodes of a graph note what their bodies access."""
        note_accesses(executable.graph)

    def launched(self, executable: Executable, timeline: Timeline) -> None:
        """Report that a graph is launched on a stream."""
        watched = self._graphs.get(executable)
        if watched is None:
            watched = self._graphs[executable] = _watched(executable.graph, self._detector)
        # The detector orders whole launches and events, but no event within a launch. So the launch as a whole waits,
        # and is recorded as a whole: no right program is accused.
        for event in watched.waits:
            self.waited(event, timeline)
        for place, accesses in watched.measured:
            self._detector.set_node(watched.graph, place, accesses())
        self._detector.launch(watched.graph, timeline.device, timeline.handle)
        for event in watched.records:
            self.recorded(event, timeline)

    def changed(self, executable: Executable) -> None:
        """Report that a graph does other work from now on."""
        known = self._graphs.get(executable)
        if known is not None:
            watched = _watched(executable.graph, self._detector)
            self._detector.follow(watched.graph, known.graph)
            self._graphs[executable] = watched

    # Memory that no ledger has

    def allocated(self, address: int, size: int, device: int, stream: int) -> None:
        """Report memory that the program has taken from the driver."""
        if address:
            self._detector.memory_allocated(address, size, device, stream)

    def freed(self, address: int, size: int, timeline: Timeline | None = None) -> None:
        """Report that the program gives memory back to the driver, in the order of a stream or at once."""
        self._detector.memory_freed(address)
        self._take_back(address, size, timeline)

    def returned(self, address: int, size: int, device: int, stream: int) -> None:
        """Report that the allocator gives memory back to the driver, in the order of a stream.

        A stream that does not exist any more, and a stream of a thread that may be another one, order nothing here.
        """
        timeline = self._streams.default(device) if stream == 0 else self._streams.created.get(stream)
        self._take_back(address, size, timeline)

    def _take_back(self, address: int, size: int, timeline: Timeline | None) -> None:
        if timeline is not None:
            # Work that nothing orders before the free may use memory that belongs to somebody else by then. The driver
            # orders the next owner of the memory after the free, so the detector forgets the accesses.
            access = span(address, size, WRITE, "ptr")
            self._detector.work(timeline.device, timeline.handle, "cudaFreeAsync", [access])
        self._detector.memory_unmapped(address, size)

    def unmapped(self, address: int, size: int) -> None:
        """Report that devices cannot reach memory any more."""
        self._detector.memory_unmapped(address, size)

    # Page-locked memory

    def registered(self, address: int, size: int) -> None:
        """Report that memory of the host is page-locked from now on."""
        self._page_locked = True
        self._detector.host_registered(address, size)

    def unregistered(self, address: int, size: int) -> None:
        """Report that memory of the host is not page-locked any more."""
        self.unmapped(address, size)
        self._detector.host_unregistered(address)


def _watched(graph: Graph, detector: _core.RaceDetector) -> WatchedGraph:
    """Make ``graph`` known to ``detector``."""
    plan = _Plan()
    plan.add(graph, set(), None)
    return WatchedGraph(detector.graph(plan.nodes), plan.waits, plan.records, plan.measured)


class _Plan:
    """The nodes of a graph and of the bodies of its conditional nodes, in one list.

    The rounds of a body follow each other, and so no round races with another. So each node of a body is one node of
    the list. The node has the accesses of all its runs in a launch: none if the body did not run.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[str, Sequence[Access], list[int], int]] = []
        self.waits: list[Event] = []
        self.records: list[Event] = []
        self.measured: list[tuple[int, Callable[[], Sequence[Access]]]] = []
        self._recorded: dict[int, int] = {}

    def add(self, graph: Graph, first: set[int], owner: ConditionalNode | None) -> set[int]:
        """Add the nodes of ``graph``, and return the places of all of them.

        Args:
            graph: The graph.
            first: The places of the nodes that come before the whole graph.
            owner: The node whose body the graph is; None for a graph that is no body.
        """
        ends: list[set[int]] = []  # for each node of the graph, the places after which the node has ended
        for number, (node, dependencies) in enumerate(zip(graph.nodes, graph.dependencies, strict=True)):
            before = first.union(*(ends[earlier] for earlier in dependencies))
            place = len(self.nodes)
            if isinstance(node, ExternalRecord):
                self.records.append(node.event)
                self._recorded[node.event.handle] = place
            elif isinstance(node, ExternalWait):
                self.waits.append(node.event)
                if node.event.handle in self._recorded:  # the node waits for the record in the same launch
                    before.add(self._recorded[node.event.handle])
            accesses: Sequence[Access] = ()
            if owner is not None:
                self.measured.append((place, functools.partial(_accesses_in_body, owner, number)))
            elif callable(node.accesses):
                self.measured.append((place, node.accesses))
            else:
                accesses = node.accesses
            self.nodes.append((node.name, accesses, sorted(before), node.stack))
            ends.append({place})
            if isinstance(node, ConditionalNode):
                ends[number] |= self.add(node.body, {place}, node)
        return set().union(*ends)


def _accesses_in_body(owner: ConditionalNode, number: int) -> Sequence[Access]:
    noted = owner.accesses_of_body
    return () if noted is None else list(noted[number])
