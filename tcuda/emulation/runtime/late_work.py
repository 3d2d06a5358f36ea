"""Late work: work that is done only when the host waits for it.

Only the doing is late. Every call is checked, and gets its emulated time, when it is made.

Work is done by the call that waits for the work, or that finds the work complete: synchronisation, a query with
success, a copy to pageable memory of the host, ``cudaFree``, and a call that needs what an array contains. Nothing else
is done then, except the work that must come before. Work that fails raises its error in the call that waits. Beyond
:data:`~tcuda.emulation.runtime.schedule.MOST_PENDING` operations, the oldest ones are done.

The allocator may free memory that pending work uses. So the memory stays accessible until the work is done.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING

from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import STREAM_DEFAULT
from tcuda.emulation.runtime.events import ExternalRecord, ExternalWait
from tcuda.emulation.runtime.late_copies import AwaitedCopy, PageableCopy
from tcuda.emulation.runtime.schedule import SAME_IN_GRAPHS, Schedule
from tcuda.emulation.runtime.timeline import Timeline
from tcuda.emulation.runtime.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcuda.emulation.runtime.graphs import Executable, Graph
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.schedule import Operation

SYNCHRONIZE = ("cudaStreamSynchronize()",)
"""The call that an error names if the work of a stream is waited for."""

_MOST_KEPT = 256 << 20
"""The most bytes that the allocator has freed, or that were read from the host, and that pending work may still use."""


class _Prompt(threading.local):
    """The scopes of this thread in which work is done at once."""

    depth = 0


class _prompt:
    """Context manager that lets the calling thread do its work at once."""

    def __init__(self, state: _Prompt) -> None:
        self._state = state

    def __enter__(self) -> None:
        self._state.depth += 1

    def __exit__(self, *error: object) -> None:
        self._state.depth -= 1


class LateWork(Work):
    """Does the work of streams as late as the program allows.

    Args:
        machine: The state of the devices, whose memory is a :class:`~tcuda.emulation.runtime.late_copies.LateMemory`.
        seed: The order of the operations that nothing orders: 0 for the later ones first, another number for a random
            order.

    Attributes:
        schedule: The pending work.
        deferring: Whether work is done late now.
    """

    def __init__(self, machine: Machine, seed: int) -> None:
        super().__init__(machine)
        self.direct = False
        self.deferring = True
        self._lock = machine.lock
        self._devices = machine.devices
        self._streams = machine.streams
        self._seed = seed
        for device in machine.devices:
            device.memory.keep_freed()
        self.schedule = Schedule(machine.lock, seed)
        self._prompt = _Prompt()
        self._unordered: list[dict[Timeline, None]] = [{} for _ in machine.devices]
        """The blocking streams that got work since the last work of the default stream, by device."""
        self._gone = [Timeline(0, device.index, STREAM_DEFAULT) for device in machine.devices]
        """For each device, one stream that stands for the destroyed blocking streams, whose work goes on."""
        self._staged_bytes = 0
        self._failures: list[Exception] = []
        """The errors of work that a call has done that does not report errors; the next call that waits raises them."""
        forget = weakref.WeakMethod(self._forget)
        os.register_at_fork(after_in_child=lambda: (forget() or _nothing)())

    def be_watched(self, watched: bool) -> None:
        """Do the work at once while a watcher sees it, because what a kernel accesses is known when it has run."""
        self.deferring = not watched

    def is_late_here(self) -> bool:
        """Return whether the work of the calling thread is done late now."""
        return self.deferring and not self._prompt.depth

    def _forget(self) -> None:
        """Forget the pending work in a forked child, which must not do the work of its parent."""
        self.schedule = Schedule(self._lock, self._seed)

    def prompt(self, stream: int) -> _prompt:
        """Wait for ``stream``, and return a scope in which the calling thread does work at once.

        The clock does not wait. The scope is for calls that need what arrays contain.
        """
        self.wait([self._streams.find(stream, SYNCHRONIZE).last])
        return _prompt(self._prompt)

    def begin_memory(self, work: Callable[[], object], stream: int) -> None:
        try:
            timeline = self._streams.find(stream, SYNCHRONIZE)
        except AcceleratorError:  # the program has destroyed the stream, and gets no work done on it
            timeline = None
        if timeline is None or timeline.capture is not None:
            # No operation may come after the launch of a graph that is not captured yet.
            self.settle_all()
            work()
        elif all(operation is None or operation.done for operation in self.before(timeline)):
            work()  # no earlier owner of the memory has pending work, so another stream may write the memory at once
        else:
            self.perform(work, [timeline])

    def perform(self, work: Callable[[], object], timelines: Sequence[Timeline], *, meets: bool = False) -> None:
        if not self.deferring:
            super().perform(work, timelines, meets=meets)
        elif meets or type(work) is AwaitedCopy:
            # Other ranks that meet may be threads of this process, which must be able to do their own work meanwhile.
            self.wait([last for timeline in timelines for last in self.before(timeline)])
            work()
        else:
            self._add(timelines, self._staged(work) if type(work) is PageableCopy else work)

    def _staged(self, copy: PageableCopy) -> Callable[[], object]:
        """Read the source of ``copy`` now. All pending work is done when the read bytes take much memory."""
        self._staged_bytes += copy.size
        if self._staged_bytes > _MOST_KEPT:
            self.settle_all()
            self._staged_bytes = copy.size
        return copy.staged()

    def perform_graph(self, executable: Executable, timeline: Timeline) -> None:
        if not self.deferring:
            super().perform_graph(executable, timeline)
            return
        prepare = functools.partial(_do_all, tuple(executable.preparations.values()))
        graph = executable.graph
        if any(node.meets for node in graph.nodes):
            waits = [node.event.operation for node in graph.nodes if isinstance(node, ExternalWait)]
            self.wait([*self.before(timeline), executable.last, *waits])
            prepare()
            self._meet(graph)
            for node in graph.nodes:
                if isinstance(node, ExternalRecord):
                    node.event.operation = None
        else:
            self._limit_kept()
            with self._lock:
                executable.last = self._add_nodes(graph, prepare, timeline, executable.last)
            self._added(executable.last)

    def _add_nodes(
        self, graph: Graph, prepare: Callable[[], object], timeline: Timeline, previous: Operation | None
    ) -> Operation:
        """Add an operation for each node of ``graph`` to ``timeline``; return an operation that is done after all.

        Args:
            graph: The graph.
            prepare: A function that prepares the launch.
            timeline: The stream of the launch.
            previous: The previous launch of the graph.
        """
        schedule, device = self.schedule, timeline.device
        begin = schedule.add(device, prepare, [*self.before(timeline), previous])
        waits = {
            place: node.event.operation for place, node in enumerate(graph.nodes) if isinstance(node, ExternalWait)
        }
        operations: list[Operation] = []
        ends = dict.fromkeys(range(len(graph.nodes)))
        for place, (node, dependencies) in enumerate(zip(graph.nodes, graph.dependencies, strict=True)):
            before = [operations[other] for other in sorted(dependencies)] or [begin]
            work = node.work_in(schedule.order)
            operations.append(schedule.add(device, work, [*before, waits.get(place)], SAME_IN_GRAPHS))
            for other in dependencies:
                ends.pop(other, None)
        for node, operation in zip(graph.nodes, operations, strict=True):
            if isinstance(node, ExternalRecord):
                node.event.operation = operation
        end = schedule.add(device, None, [operations[place] for place in ends] or [begin])
        self._extend(timeline, end)
        return end

    def _meet(self, graph: Graph) -> None:
        """Do the work of ``graph``, which meets other ranks, in the order that all ranks have: that of the capture."""
        for node in graph.nodes:
            if node.meets:
                node.work()
            else:
                with self._lock:
                    node.work()

    def _add(self, timelines: Sequence[Timeline], work: Callable[[], object]) -> None:
        """Add an operation to ``timelines``."""
        self._limit_kept()
        with self._lock:
            earlier = [last for timeline in timelines for last in self.before(timeline)]
            operation = self.schedule.add(timelines[0].device, work, earlier)
            for timeline in timelines:
                if timeline.device == operation.device:
                    self._extend(timeline, operation)
                else:  # so that the other device waits for the work too
                    self._extend(timeline, self.schedule.add(timeline.device, None, [operation]))
        self._added(operation)

    def _limit_kept(self) -> None:
        """Do all pending work if much freed memory, or freed memory without need, is kept for it."""
        kept = sum(device.memory.kept for device in self._devices)
        if kept and (kept > _MOST_KEPT or not len(self.schedule)):
            self.settle_all()

    def _added(self, operation: Operation) -> None:
        """Do the work that the schedule does when ``operation`` is added."""
        if self._prompt.depth:
            self.schedule.do([operation])
        try:
            self.schedule.advance()
        except Exception as error:
            self._failures.append(error)

    def before(self, timeline: Timeline) -> list[Operation | None]:
        """Return the operations for which the next operation of ``timeline`` waits."""
        before = [timeline.last]
        if timeline.blocking:
            default = self._devices[timeline.device].default
            if timeline is default:
                before += self._last_of_unordered(timeline.device)
            else:
                before.append(default.last)
        return before

    def _last_of_unordered(self, device: int) -> list[Operation]:
        """Return the last operations of the blocking streams for which no work of the default stream waits yet."""
        unordered = self._unordered[device]
        if not unordered:
            return []
        with self._lock:
            for timeline in [*unordered]:
                if timeline.last is None or timeline.last.done:
                    del unordered[timeline]
            return [timeline.last for timeline in unordered if timeline.last is not None]

    def join(self, timeline: Timeline, other: Operation | None = None) -> None:
        """Let ``timeline`` wait for the operation ``other``, too; the caller holds the lock."""
        self._extend(timeline, self.schedule.joined(timeline.device, [*self.before(timeline), other]))

    def end(self, timeline: Timeline) -> None:
        """Keep the work of ``timeline``, which is destroyed, in the order of the default stream.

        The caller holds the lock.
        """
        unordered = self._unordered[timeline.device]
        if timeline in unordered:
            del unordered[timeline]
            gone = self._gone[timeline.device]
            self._extend(gone, self.schedule.joined(timeline.device, [gone.last, timeline.last]))

    def _extend(self, timeline: Timeline, operation: Operation | None) -> None:
        """Let ``operation``, which waits for :meth:`before`, be the last operation of ``timeline``."""
        timeline.last = operation
        if timeline.blocking:
            unordered = self._unordered[timeline.device]
            if timeline is self._devices[timeline.device].default:
                unordered.clear()
            else:
                unordered[timeline] = None

    def wait(self, operations: Iterable[Operation | None]) -> None:
        """Do ``operations``, or raise the error of work that has failed.

        Raises:
            RuntimeError: A signal handler or a finalizer waits for the work that this thread does now.
        """
        done = self.schedule.do(operations)
        if self._failures:
            raise self._failures.pop(0)
        if not done:
            raise RuntimeError(
                "A signal handler or a finalizer waits for work on a stream while this thread does work of the same "
                "stream. Wait outside of the handler."
            )

    def settle(self, operations: Iterable[Operation | None]) -> bool:
        """Do ``operations``, keep their errors for the next call that waits, and return whether all are done."""
        wanted = list(operations)
        while True:
            try:
                return self.schedule.do(wanted)
            except Exception as error:
                self._failures.append(error)

    def settle_all(self) -> None:
        """Do all pending work, and give the memory back that was freed before."""
        with self._lock:
            if self.settle(self.schedule.pending()):
                for device in self._devices:
                    if device.memory.kept:
                        device.memory.give_back()

    def query(self, operation: Operation | None) -> int:
        """Do ``operation``, which is complete by the clock, and return a status."""
        try:
            if not self.schedule.do([operation]):
                return Status.NOT_READY
            self.wait(())
            return Status.SUCCESS
        except AcceleratorError as error:
            return error.error_code


def _do_all(works: Iterable[Callable[[], object]]) -> None:
    for work in works:
        work()


def _nothing() -> None:
    pass
