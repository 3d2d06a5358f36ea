"""The streams of all devices: the stream that a handle names, and the time at which an operation on it may start."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._base.statuses import Status
from tcuda._runtime.protocol import STREAM_DEFAULT, STREAM_LEGACY, STREAM_PER_THREAD
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.clock import CALL
from tcuda.emulation.runtime.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.captures import Capture, Captures
    from tcuda.emulation.runtime.clock import Clock
    from tcuda.emulation.runtime.devices import EmulatedDevice


class Streams:
    """The streams of all devices.

    The caller holds the lock of the clock.

    Args:
        devices: The devices.
        thread: The state of each thread, with the current device.
        captures: The captures, which forbid some calls.
        clock: The clock.

    Attributes:
        created: The streams that were created and not destroyed, by handle.
        times: Finds the start and the end of an operation on a stream.
    """

    def __init__(
        self, devices: Sequence[EmulatedDevice], thread: _core.EmulatedThread, captures: Captures, clock: Clock
    ) -> None:
        self.created: dict[int, Timeline] = {}
        self._devices = devices
        self._thread = thread
        self._captures = captures
        self._per_thread: dict[tuple[int, int], Timeline] = {}
        """The per-thread default streams, by thread and device."""
        of_devices = [(device.default, device.activity) for device in devices]
        self.times = _core.EmulatedTimes(clock, of_devices, CALL)

    # Streams by their handles

    def find(self, handle: int, call: Call, device: int | None = None) -> Timeline:
        """Return the stream ``handle``.

        Args:
            handle: The handle.
            call: The call of the runtime, for the error.
            device: The device whose default streams are meant; the current one if None.

        Raises:
            AcceleratorError: No stream has the handle (400).
        """
        timeline = self.created.get(handle)
        if timeline is not None:
            return timeline
        if handle > STREAM_PER_THREAD:
            raise failure(Status.INVALID_RESOURCE_HANDLE, call)
        if device is None:
            device = self._thread.device
        if handle == 0 or handle == STREAM_LEGACY:
            return self._devices[device].default
        if handle == STREAM_PER_THREAD:
            return self._per_thread.get((threading.get_ident(), device)) or self._new_per_thread(device)
        raise failure(Status.INVALID_RESOURCE_HANDLE, call)

    def of_current_device(self, handle: int, call: Call) -> Timeline:
        """Return the stream ``handle`` for work that is allowed only while the device of the stream is current.

        Raises:
            AcceleratorError: No stream has the handle, or the stream is of another device (400).
        """
        timeline = self.created.get(handle) or self.find(handle, call)
        if timeline.device != self._thread.device:
            raise failure(Status.INVALID_RESOURCE_HANDLE, call)
        return timeline

    def default(self, device: int) -> Timeline:
        """Return the legacy default stream of ``device``."""
        return self._devices[device].default

    def observe(self, handle: int, call: Call) -> Timeline:
        """Return the stream ``handle`` for a call that looks at its progress, which captures forbid.

        Raises:
            AcceleratorError: No stream has the handle (400), or a capture forbids the call (900, 906).
        """
        timeline = self.find(handle, call)
        if self._captures.in_progress:
            if timeline.capture is not None:
                raise timeline.capture.invalidate(call)
            self.forbid_implicit(timeline, call)
            self._captures.forbid_unsafe(call)
        return timeline

    def ready(self, device: int) -> int:
        """Return the time at which all streams of ``device`` are idle, also the destroyed streams."""
        return self.times.ready(device)

    def add(self, timeline: Timeline) -> None:
        """Add a stream that is created now."""
        self.created[timeline.handle] = timeline

    def remove(self, timeline: Timeline) -> None:
        """Remove a stream that is destroyed now."""
        self.created.pop(timeline.handle, None)

    def _new_per_thread(self, device: int) -> Timeline:
        key = threading.get_ident(), device
        return self._per_thread.setdefault(key, Timeline(STREAM_PER_THREAD, device, STREAM_DEFAULT))

    # The time of operations

    def occupy_together(self, timelines: Sequence[Timeline], duration: int) -> None:
        """Let ``timelines`` be busy for the same ``duration`` nanoseconds, as soon as all of them can start."""
        start = max(map(self.times.start, timelines))
        for timeline in timelines:
            self.times.extend(timeline, start + duration)
            self.times.note(timeline.device, start, start + duration)

    # Captures

    def capture_beside(self, timeline: Timeline) -> Capture | None:
        """Return the capture of a stream for which ``timeline``, if it is a default stream, would have to wait."""
        if timeline is self._devices[timeline.device].default:
            for capture in self._captures.in_progress:
                for other in self._taking_part(capture):
                    if other.blocking and other.device == timeline.device:
                        return capture
        return None

    def _taking_part(self, capture: Capture) -> list[Timeline]:
        """Return the streams that take part in ``capture``."""
        handles = capture.streams()
        found = [self.created[handle] for handle in handles if handle in self.created]
        if STREAM_PER_THREAD in handles:
            found += self._per_thread.values()
        return [timeline for timeline in found if timeline.capture is capture]

    def forbid_implicit(self, timeline: Timeline, call: Call) -> None:
        """Refuse ``call``, which would let a default stream wait for a stream that captures.

        Raises:
            AcceleratorError: ``timeline`` would wait for a stream that captures; that capture is invalidated (906).
        """
        capture = self.capture_beside(timeline)
        if capture is not None:
            raise capture.invalidate(call, Status.STREAM_CAPTURE_IMPLICIT)

    def end_capture(self, capture: Capture) -> None:
        """Let no stream take part in ``capture`` any more."""
        # The origin goes last, so that the call can be repeated after an exception of a signal handler.
        taking_part = self._taking_part(capture)
        origins = [timeline for timeline in taking_part if timeline.handle == capture.origin]
        for timeline in taking_part:
            if timeline not in origins:
                timeline.capture = None
        if capture in self._captures.in_progress:
            self._captures.in_progress.remove(capture)
        capture.active = False
        for timeline in origins:
            timeline.capture = None
