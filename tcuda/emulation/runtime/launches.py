"""The launches of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda.emulation.runtime import costs
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.graphs import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcuda import _core
    from tcuda.emulation.runtime.accesses import Accesses
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.operations import Operations
    from tcuda.emulation.runtime.work import Work


class Launches:
    """The calls that launch kernels.

    Args:
        machine: The state of the devices.
        work: Does the work of the kernels.
        operations: Adds operations to streams.
    """

    def __init__(self, machine: Machine, work: Work, operations: Operations) -> None:
        self._lock = machine.lock
        self._races = machine.races
        self._contents = machine.contents
        self._thread = machine.thread
        self._capturing = machine.captures.in_progress
        self._streams = machine.streams
        self._times = machine.streams.times
        self._work = work
        self._operations = operations

    def launch(
        self,
        stream: int,
        work: Callable[[], object],
        nbytes: int,
        flops: int = 0,
        *,
        name: str = "kernel",
        addresses: Iterable[int] = (),
        accesses: Accesses = (),
    ) -> None:
        """Run ``work`` as a kernel on ``stream``, or, if the stream captures, at every launch of the graph.

        Args:
            stream: The stream, which is of the current device.
            work: A function that does the work of the kernel on the memory. The function must keep no memory alive,
                because a graph keeps the function.
            nbytes: The bytes of memory that the kernel moves.
            flops: The number of floating-point operations of the kernel.
            name: The name of the kernel in a drawing of the graph.
            addresses: The device memory that the kernel reads and writes.
            accesses: What the kernel reads and writes, for a race detector. Nobody asks for the accesses unless
                a watcher follows the program or the stream captures.
        """
        call = ("cudaLaunchKernel()",)
        if self._contents.unwritten is not None:
            work = self._contents.unwritten.around(work, accesses, name)
        # Without a capture the lock is not needed, because nothing is changed before the work.
        timeline = self._streams.of_current_device(stream, call)
        duration = costs.kernel(nbytes, flops, timeline.multiprocessors)
        if self._capturing:
            with self._lock:
                if timeline.capture is not None:
                    self._operations.enqueue(timeline, Node(name, duration, work, addresses, nbytes, accesses), call)
                    return
                self._streams.forbid_implicit(timeline, call)
        # The lock is not held, because the work may be slow, and may free arrays.
        if self._work.direct:
            work()
        else:
            self._work.perform(work, [timeline])
        with self._lock:
            end = self._times.occupy(timeline, duration)
            if self._races.trace is not None:
                self._races.trace.work(timeline, "kernel", name, end - duration, end, nbytes)
        self._races.watcher.work(timeline, name, accesses)

    def multiprocessors(self, stream: int) -> int:
        """Return the number of multiprocessors that the kernels on ``stream`` of the current device run on."""
        return self._streams.of_current_device(stream, ("cudaLaunchKernel()",)).multiprocessors

    def prepareWork(self, work: _core.EmulatedWork, obstacles: Iterable[list[Any]]) -> None:
        """Let ``work`` begin and end kernels that the caller runs, while nothing captures or watches them.

        For a kernel of a microsecond, ``work`` does what :meth:`launch` does for all kernels.

        Args:
            work: The object that begins and ends the kernels.
            obstacles: Lists that are empty while the arrays can do work at once.
        """
        work.use(
            self._times,
            self._thread,
            self._streams.created,
            (self._capturing, self._races.followers, self._contents.watched, *obstacles),
            costs.kernel,
        )

    def launchTogether(
        self,
        streams: Sequence[tuple[int, int]],
        work: Callable[[], object],
        duration: int,
        *,
        name: str,
        addresses: Iterable[int],
        nbytes: int,
        accesses: Accesses = (),
        meets: bool = False,
    ) -> None:
        """Run ``work`` as kernels on several streams that wait for each other, as the kernels of a collective do.

        If the streams capture, each launch of the graph does the work. A failed call leaves the streams unchanged.

        Args:
            streams: Device and handle of each stream. All of them take part in one capture, or none captures.
            work: A function that does the work of all kernels. The function must keep no memory alive.
            duration: The nanoseconds that each of the kernels takes.
            name: The name of the kernels in a drawing of the graph.
            addresses: The device memory that the kernels read and write.
            nbytes: The bytes of memory that the kernels move.
            accesses: What the kernels read and write, for a race detector.
            meets: Whether the work waits for other threads or processes.
        """
        call = ("cudaLaunchKernel()",)
        if self._contents.unwritten is not None:
            work = self._contents.unwritten.around(work, accesses, name)
        with self._lock:
            timelines = [self._streams.find(handle, call, device) for device, handle in streams]
            capture = timelines[0].capture
            if any(timeline.capture is not capture for timeline in timelines):
                raise failure(Status.STREAM_CAPTURE_MERGE, call)
            if capture is not None:
                if not capture.valid:
                    raise failure(Status.STREAM_CAPTURE_INVALIDATED, call)
                node = Node(name, duration, work, addresses, nbytes, accesses, meets=meets)
                node.devices = [timeline.device for timeline in timelines]
                node.stack = self._races.watcher.stack()
                capture.add_together([timeline.handle for timeline in timelines], node)
                return
            if self._capturing:
                for timeline in timelines:
                    self._streams.forbid_implicit(timeline, call)
        # The lock is not held, because the work may be slow, and may wait for another thread or process.
        self._work.perform(work, timelines, meets=meets)
        with self._lock:
            self._streams.occupy_together(timelines, duration)
            if self._races.trace is not None:
                for timeline in timelines:
                    self._races.trace.work(timeline, "kernel", name, timeline.ready - duration, timeline.ready, nbytes)
        self._races.watcher.work_together(timelines, name, accesses)

    def sleep(self, cycles: int, stream: int) -> None:
        call = "tcuda_spin({}, {:#x})", cycles, stream
        with self._lock:
            duration = min(max(0, cycles) * 1_000_000 // costs.CLOCK_KHZ, costs.LONGEST)
            timeline = self._streams.of_current_device(stream, call)
            self._operations.enqueue(timeline, Node("tcuda_spin", duration), call)
