"""The stream entries of the core's driver table: the questions of the allocator about the streams of emulated devices.

No capture forbids these entries, because the allocator's calls are not among the calls that a program captures. The
entries take no emulated time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._status import Status

if TYPE_CHECKING:
    from tcuda._runtime.emulated.clock import Clock
    from tcuda._runtime.emulated.streams import Streams

_SOME_CAPTURE = 2**64 - 1
_CALL = "cudaStreamQuery({:#x})"


class DriverStreams:
    """The stream entries of the driver table.

    The events of the allocator are numbers: the time for which an event waits, in nanoseconds of the clock, plus 1. So
    no entry leaves anything behind, and each may be called again after an exception of a signal handler.

    Args:
        streams: The streams.
        clock: The clock, whose lock the streams need.
    """

    def __init__(self, streams: Streams, clock: Clock) -> None:
        self._streams = streams
        self._clock = clock

    def record(self, device: int, stream: int) -> int:
        """Return an event for the work that ``stream`` has been given so far."""
        return self._ready(device, stream) + 1

    def query(self, device: int, event: int) -> int:
        """Return whether ``event`` is complete, as a status."""
        return self._status(event - 1)

    def synchronize(self, device: int, event: int) -> int:
        """Wait for ``event``."""
        self._clock.wait_until(event - 1)
        return Status.SUCCESS

    def destroy_event(self, device: int, event: int) -> int:
        """Do nothing, because an event is only a number."""
        return Status.SUCCESS

    def query_stream(self, device: int, stream: int) -> int:
        """Return whether ``stream`` is idle, as a status."""
        return self._status(self._ready(device, stream))

    def synchronize_stream(self, device: int, stream: int) -> int:
        """Wait for ``stream``."""
        self._clock.wait_until(self._ready(device, stream))
        return Status.SUCCESS

    def synchronize_device(self, device: int, _: int) -> int:
        """Wait for all streams of ``device``."""
        with self._clock._lock:
            self._clock.wait_until(self._streams.ready(device))
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

    def _ready(self, device: int, stream: int) -> int:
        return self._streams.find(stream, (_CALL, stream), device).ready

    def _status(self, ready: int) -> int:
        return Status.SUCCESS if ready <= self._clock.now() else Status.NOT_READY
