"""The streams of emulated devices as the allocator asks about them: the stream entries of the core's driver table.

What the allocator does is no part of what a program captures, and no capture forbids it; it takes no emulated time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._status import Status

if TYPE_CHECKING:
    from tcuda._runtime.emulated.runtime import EmulatedRuntime
    from tcuda._runtime.emulated.timeline import Timeline

_SOME_CAPTURE = 2**64 - 1


class DriverStreams:
    """The entries, for the streams of ``runtime``.

    The allocator's events are its own: the time that they wait for, in nanoseconds of the clock, plus 1. So no entry
    leaves anything behind, and each may be called again if an exception of a signal handler ended it.
    """

    def __init__(self, runtime: EmulatedRuntime) -> None:
        self._runtime = runtime

    def record(self, device: int, stream: int) -> int:
        """Return an event that is complete when ``stream`` has done what it has to do now."""
        return self._timeline(device, stream).ready + 1

    def query(self, device: int, event: int) -> int:
        """Return whether ``event`` is complete, as a status."""
        return self._status(event - 1)

    def synchronize(self, device: int, event: int) -> int:
        """Wait for ``event``."""
        self._runtime.clock.wait_until(event - 1)
        return Status.SUCCESS

    def destroy_event(self, device: int, event: int) -> int:
        """Do nothing: an event is only a number."""
        return Status.SUCCESS

    def query_stream(self, device: int, stream: int) -> int:
        """Return whether ``stream`` is idle, as a status."""
        return self._status(self._timeline(device, stream).ready)

    def synchronize_stream(self, device: int, stream: int) -> int:
        """Wait for ``stream``."""
        self._runtime.clock.wait_until(self._timeline(device, stream).ready)
        return Status.SUCCESS

    def synchronize_device(self, device: int, _: int) -> int:
        """Wait for all streams of ``device``."""
        self._runtime.clock.wait_until(max(stream.ready for stream in self._runtime.streams_of(device)))
        return Status.SUCCESS

    def capture_of(self, device: int, stream: int) -> int:
        """Return the number of the capture that ``stream`` takes part in, 0 for none.

        Of the default stream, which of the captures on streams that wait for it is meant cannot be told.
        """
        if stream == 0:
            streams = self._runtime.streams_of(device)
            return _SOME_CAPTURE if any(other.blocking and other.capture is not None for other in streams) else 0
        capture = self._timeline(device, stream).capture
        return 0 if capture is None else capture.number

    def _timeline(self, device: int, stream: int) -> Timeline:
        return self._runtime.stream_of(device, stream)

    def _status(self, ready: int) -> int:
        return Status.SUCCESS if ready <= self._runtime.clock.now() else Status.NOT_READY
