"""The stream entries of the core's driver table: the questions of the allocator about the streams of emulated devices.

No capture forbids these entries, because the allocator's calls are not among the calls that a program captures. The
entries take no emulated time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda.emulation.runtime.watch import FIRST_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcuda.emulation.runtime.machine import Machine
    from tcuda.emulation.runtime.schedule import Operation
    from tcuda.emulation.runtime.timeline import Timeline

    Poison = Callable[[int, int, int, int], None]
    """A function of an address, a number of bytes, their value, and a stream."""

_SOME_CAPTURE = 2**64 - 1
_CALL = "cudaStreamQuery({:#x})"
_REGISTER = "cudaHostRegister({:#x}, {})"
_UNREGISTER = "cudaHostUnregister({:#x})"


class DriverStreams:
    """The stream entries of the driver table.

    The events of the allocator are numbers: the time for which an event waits, in nanoseconds of the clock, plus 1. So
    no entry leaves anything behind, and each may be called again after an exception of a signal handler. While a race
    detector watches, each event has a number of its own, because a detector must tell the events from each other.

    Args:
        machine: The state of the devices.
        poison: Sets bytes of memory, in the order of a stream.
    """

    def __init__(self, machine: Machine, poison: Poison) -> None:
        self._streams = machine.streams
        self._clock = machine.clock
        self._races = machine.races
        self._memory = machine.memory
        self._uses = machine.host_uses
        self._poison = poison
        self._watched: dict[int, int] = {}
        """The times of the events that a watcher knows."""

    def record(self, device: int, stream: int) -> int:
        """Return an event for the work that ``stream`` has been given so far."""
        timeline = self._streams.find(stream, (_CALL, stream), device)
        return self._event(timeline.ready, timeline)

    def record_device(self, device: int) -> int:
        """Return an event for the work that all streams of ``device`` have been given so far."""
        with self._clock._lock:
            # A watcher has no events of devices. The default stream alone leaves some order out, which is safe.
            return self._event(self._streams.ready(device), self._streams.default(device))

    def _event(self, ready: int, timeline: Timeline) -> int:
        """Return an event that is complete at the time ``ready``, and that stands for the work of ``timeline``."""
        event = self._races.watcher.numbered(timeline)
        if not event:
            return ready + 1
        self._watched[event] = ready
        return event

    def host_register(self, address: int, size: int) -> int:
        """Page-lock memory that the allocator takes; no capture forbids that."""
        with self._clock._lock:
            self._memory.register(address, size, (_REGISTER, address, size))
            self._uses.begin(address, size)
            self._races.watcher.registered(address, size)
        return Status.SUCCESS

    def host_unregister(self, address: int) -> int:
        """Undo :meth:`host_register`."""
        with self._clock._lock:
            size = self._memory.unregister(address, (_UNREGISTER, address))
            self._uses.end(address)
            self._races.watcher.unregistered(address, size)
        return Status.SUCCESS

    def query_host(self, address: int, size: int) -> int:
        """Return whether no work and no graph uses page-locked memory, as a status."""
        with self._clock._lock:
            used = self._uses.in_use(address, size, lambda *work: self._finished(*work) == Status.SUCCESS)
        return Status.NOT_READY if used else Status.SUCCESS

    def query(self, device: int, event: int) -> int:
        """Return whether ``event`` is complete, as a status."""
        status = self._status(self._time(event))
        if status == Status.SUCCESS:
            self._completed(event)
        return status

    def synchronize(self, device: int, event: int) -> int:
        """Wait for ``event``."""
        self._clock.wait_until(self._time(event))
        self._completed(event)
        return Status.SUCCESS

    def destroy_event(self, device: int, event: int) -> int:
        """Forget an event that a watcher knows; another event is only a number."""
        if event >= FIRST_NUMBER:
            self._watched.pop(event, None)
            self._races.watcher.number_destroyed(event)
        return Status.SUCCESS

    def query_stream(self, device: int, stream: int) -> int:
        """Return whether ``stream`` is idle, as a status."""
        timeline = self._streams.find(stream, (_CALL, stream), device)
        status = self._status(timeline.ready)
        if status == Status.SUCCESS:
            self._races.watcher.finished(timeline)
        return status

    def synchronize_stream(self, device: int, stream: int) -> int:
        """Wait for ``stream``."""
        timeline = self._streams.find(stream, (_CALL, stream), device)
        self._clock.wait_until(timeline.ready)
        self._races.watcher.finished(timeline)
        return Status.SUCCESS

    def synchronize_device(self, device: int, _: int) -> int:
        """Wait for all streams of ``device``."""
        with self._clock._lock:
            self._clock.wait_until(self._streams.ready(device))
            self._races.watcher.device_finished(device)
        return Status.SUCCESS

    def fill(self, device: int, stream: int, address: int, size: int, value: int) -> int:
        """Set all bytes of memory to ``value``, in the order of ``stream``."""
        self._poison(address, size, value, stream)
        return Status.SUCCESS

    def capture_of(self, device: int, stream: int) -> int:
        """Return the number of the capture in which ``stream`` takes part, 0 for none.

        The default stream may wait for several streams that capture. The number for the default stream is then a number
        that no capture has.
        """
        timeline = self._streams.find(stream, (_CALL, stream), device)
        if stream == 0:
            return 0 if self._streams.capture_beside(timeline) is None else _SOME_CAPTURE
        return 0 if timeline.capture is None else timeline.capture.number

    def _finished(self, ready: int, operations: Iterable[Operation | None]) -> int:
        """Return whether work is complete, as a status."""
        return self._status(ready)

    def _time(self, event: int) -> int:
        return event - 1 if event < FIRST_NUMBER else self._watched.get(event, 0)

    def _completed(self, event: int) -> None:
        """Report that the allocator knows that ``event`` is complete, and may hand the memory out again."""
        if event >= FIRST_NUMBER:
            self._races.watcher.number_completed(event)

    def _timeline(self, device: int, stream: int) -> Timeline:
        return self._streams.find(stream, (_CALL, stream), device)

    def _status(self, ready: int) -> int:
        return Status.SUCCESS if ready <= self._clock.now() else Status.NOT_READY
