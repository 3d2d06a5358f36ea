"""The questions of the allocator about the streams of emulated devices, with the late schedule."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda.emulation.runtime.driver_streams import DriverStreams

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda.emulation.runtime.driver_streams import Poison
    from tcuda.emulation.runtime.late_work import LateWork
    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.schedule import Operation


class LateDriverStreams(DriverStreams):
    """The stream entries of the driver table, which do the work for which they wait or which they find complete.

    The events of the allocator are numbers, each for a time and an operation. An entry that is called again after an
    exception of a signal handler may leave such a pair behind.

    Args:
        machine: The state of the devices.
        poison: Sets bytes of memory, in the order of a stream.
        work: Does the work.
    """

    def __init__(self, machine: Machine, poison: Poison, work: LateWork) -> None:
        super().__init__(machine, poison)
        self._work = work
        self._own_numbers = itertools.count(1)
        self._events: dict[int, tuple[int, Operation | None]] = {}

    def record(self, device: int, stream: int) -> int:
        """Return an event for the work that ``stream`` has been given so far."""
        with self._clock._lock:
            timeline = self._timeline(device, stream)
            number = self._races.watcher.numbered(timeline) or next(self._own_numbers)
            self._events[number] = timeline.ready, timeline.last
            return number

    def record_device(self, device: int) -> int:
        """Return an event for the work that all streams of ``device`` have been given so far."""
        with self._clock._lock:
            number = self._races.watcher.numbered(self._streams.default(device)) or next(self._own_numbers)
            schedule = self._work.schedule
            self._events[number] = self._streams.ready(device), schedule.joined(device, schedule.of_device(device))
            return number

    def query(self, device: int, event: int) -> int:
        """Return whether ``event`` is complete, as a status."""
        ready, operation = self._events.get(event, (0, None))
        status = self._finished(ready, [operation])
        if status == Status.SUCCESS:
            self._completed(event)
        return status

    def synchronize(self, device: int, event: int) -> int:
        """Wait for ``event``."""
        ready, operation = self._events.get(event, (0, None))
        self._clock.wait_until(ready)
        self._work.settle([operation])
        self._completed(event)
        return Status.SUCCESS

    def destroy_event(self, device: int, event: int) -> int:
        """Forget ``event``."""
        self._events.pop(event, None)
        return super().destroy_event(device, event)

    def query_stream(self, device: int, stream: int) -> int:
        """Return whether ``stream`` is idle, as a status."""
        timeline = self._timeline(device, stream)
        status = self._finished(timeline.ready, [timeline.last])
        if status == Status.SUCCESS:
            self._races.watcher.finished(timeline)
        return status

    def synchronize_stream(self, device: int, stream: int) -> int:
        """Wait for ``stream``."""
        self._work.settle([self._timeline(device, stream).last])
        return super().synchronize_stream(device, stream)

    def synchronize_device(self, device: int, _: int) -> int:
        """Wait for all streams of ``device``."""
        super().synchronize_device(device, _)
        with self._clock._lock:
            self._work.settle(self._work.schedule.of_device(device))
        return Status.SUCCESS

    def finish(self, device: int) -> int:
        """Do all pending work of ``device``, whose memory a library of the program may free next. The clock stays."""
        with self._clock._lock:
            self._work.settle(self._work.schedule.of_device(device))
        return Status.SUCCESS

    def _finished(self, ready: int, operations: Iterable[Operation | None]) -> int:
        status = self._status(ready)
        if status == Status.SUCCESS and not self._work.settle(operations):
            return Status.NOT_READY
        return status
