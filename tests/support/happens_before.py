"""The order of a program's work as sets of everything that comes before, and the races by comparing every pair.

This model shares no idea with the detector of the core. A set of accesses is a number with one bit for each operation.
The model forgets nothing, so that each of its steps takes longer than the last.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda import _core

HOST = -1


def bytes_of(use: _core.RaceUse) -> frozenset[int]:
    """Return the addresses of all bytes of an access."""
    address, itemsize, shape, strides = use[:4]
    places = itertools.product(*map(range, shape))
    items = (address + sum(map(int.__mul__, place, strides)) for place in places)
    return frozenset(byte for item in items for byte in range(item, item + itemsize))


@dataclasses.dataclass(frozen=True)
class Access:
    """An access of the program."""

    operation: int
    label: str
    kind: int
    touched: frozenset[int]
    allocation: int | None
    adjacent: bool
    """Whether the bytes were adjacent when the access was made; the detector keeps such an access in pieces."""


class Race(NamedTuple):
    """Two accesses that race.

    Attributes:
        previous: The number of the operation of the first access.
        previous_label: The label of the first access.
        current: The number of the operation of the second access.
        label: The label of the second access.
        use_after_free: Whether the memory was handed out again between the accesses.
    """

    previous: int
    previous_label: str
    current: int
    label: str
    use_after_free: bool


def _without(access: Access, begin: int, end: int) -> Access | None:
    first, last = min(access.touched), max(access.touched)
    if last < begin or end <= first:
        return access
    left = access.touched.difference(range(begin, end))
    return dataclasses.replace(access, touched=left) if access.adjacent and left else None


@dataclasses.dataclass
class Graph:
    """An executable graph: the accesses and the dependencies of each node, and what comes before a next launch."""

    nodes: Sequence[tuple[Sequence[_core.RaceUse], Sequence[int]]]
    last: int = 0


@dataclasses.dataclass
class Stream:
    """A stream of a device, and everything that comes before its next operation."""

    device: int
    blocking: bool
    legacy: bool
    before: int = 0


class Program:
    """A program, operation by operation.

    Attributes:
        accesses: All accesses, except those of memory that is unmapped.
        host: What the host knows to be complete.
    """

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.host = 0
        self._operations = 0
        self._streams: dict[tuple[int, int], Stream] = {}
        self._gone: dict[tuple[int, bool], int] = {}
        self._events: dict[int, int] = {}
        self._allocations: dict[int, tuple[int, int]] = {}  # by address: the size and the number
        self._numbers = itertools.count()

    # Streams and events

    def create(self, device: int, handle: int, blocking: bool) -> None:
        """Create a stream."""
        self._streams[device, handle] = Stream(device, blocking, handle == 0)

    def destroy(self, device: int, handle: int) -> None:
        """Destroy a stream, whose work goes on."""
        stream = self._streams.pop((device, handle))
        key = device, stream.blocking
        self._gone[key] = self._gone.get(key, 0) | self._start(stream)

    def record(self, event: int, device: int, handle: int) -> None:
        """Record an event."""
        stream = self._streams[device, handle]
        stream.before = self._events[event] = self._start(stream)

    def wait(self, event: int, device: int, handle: int) -> None:
        """Let a stream wait for an event."""
        if event in self._events:
            stream = self._streams[device, handle]
            stream.before = self._start(stream) | self._events[event]

    def finish_event(self, event: int) -> None:
        """Let the host wait for an event."""
        self.host |= self._events.get(event, 0)

    def forget_event(self, event: int) -> None:
        """Destroy an event."""
        self._events.pop(event, None)

    def finish_stream(self, device: int, handle: int) -> None:
        """Let the host wait for a stream."""
        self.host |= self._start(self._streams[device, handle])

    def finish_device(self, device: int) -> None:
        """Let the host wait for a device."""
        for stream in self._streams.values():
            if stream.device == device:
                self.host |= self._start(stream)
        self.host |= self._gone.get((device, False), 0) | self._gone.get((device, True), 0)

    # Work

    def work(self, streams: Sequence[tuple[int, int]], uses: Sequence[_core.RaceUse]) -> set[Race]:
        """Queue an operation on one stream, or on several that wait for each other.

        Returns:
            All races of the operation.
        """
        own = [self._streams[key] for key in streams]
        before = 0
        for stream in own:
            before |= self._start(stream)
        number, races = self._operation(before, uses)
        for stream in own:
            stream.before |= before | 1 << number
        return races

    def host_access(self, uses: Sequence[_core.RaceUse]) -> set[Race]:
        """Let the host access memory."""
        number, races = self._operation(self.host, uses)
        self.host |= 1 << number
        return races

    def launch(self, graph: Graph, device: int, handle: int) -> set[Race]:
        """Launch a graph."""
        stream = self._streams[device, handle]
        before = self._start(stream) | graph.last | self.host
        self._operations += 1
        ends: list[int] = []
        races: set[Race] = set()
        for uses, dependencies in graph.nodes:
            known = before
            for place in dependencies:
                known |= ends[place]
            number, found = self._operation(known, uses)
            ends.append(known | 1 << number)
            races |= found
        for end in ends:
            before |= end
        stream.before = graph.last = before
        return races

    # Memory

    def allocate(self, address: int, size: int) -> None:
        """Hand out memory."""
        self._forget_allocations(address, size)
        self._allocations[address] = size, next(self._numbers)

    def unmap(self, address: int, size: int) -> None:
        """Give memory back to the driver. A strided access of a part of the memory is forgotten as a whole."""
        self.accesses = [kept for access in self.accesses if (kept := _without(access, address, address + size))]
        self._forget_allocations(address, size)

    def allocation_at(self, address: int) -> int | None:
        """Return the number of the allocation around an address."""
        for begin, (size, number) in self._allocations.items():
            if begin <= address < begin + size:
                return number
        return None

    def _forget_allocations(self, address: int, size: int) -> None:
        for begin, (known, _) in list(self._allocations.items()):
            if begin < address + size and address < begin + known:
                del self._allocations[begin]

    # Parts

    def _start(self, stream: Stream) -> int:
        """Return what an operation that is queued on ``stream`` now comes after."""
        before = stream.before
        if stream.legacy:
            for other in self._streams.values():
                if other.device == stream.device and other.blocking:
                    before |= other.before
            before |= self._gone.get((stream.device, True), 0)
        elif stream.blocking:
            legacy = self._streams.get((stream.device, 0))
            before |= legacy.before if legacy is not None else 0
        return before

    def _operation(self, before: int, uses: Iterable[_core.RaceUse]) -> tuple[int, set[Race]]:
        self._operations += 1
        number = self._operations
        before |= self.host | 1 << number
        races: set[Race] = set()
        for use in uses:
            touched, kind, label = bytes_of(use), use[4], use[5]
            allocation = self.allocation_at(min(touched)) if touched else None
            for other in self.accesses:
                unordered = not before >> other.operation & 1
                if unordered and (kind | other.kind) & 2 and touched & other.touched:
                    reused = None not in (allocation, other.allocation) and allocation != other.allocation
                    races.add(Race(other.operation, other.label, number, label, reused))
            if touched:
                adjacent = len(touched) == max(touched) + 1 - min(touched)
                self.accesses.append(Access(number, label, kind, touched, allocation, adjacent))
        return number, races
