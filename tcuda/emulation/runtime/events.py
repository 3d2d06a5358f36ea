"""Events: points in the work of streams, and the nodes of graphs that record them and wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tcuda._base.statuses import Status
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING, EVENT_INTERPROCESS
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.graphs import Node, Places

if TYPE_CHECKING:
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.captures import Capture, Captures
    from tcuda.emulation.runtime.handles import Handles
    from tcuda.emulation.runtime.schedule import Operation


class Event:
    """An event.

    Args:
        handle: The ``cudaEvent_t``.
        device: The device on which the event is created.
        flags: The ``EVENT_...`` flags.

    Attributes:
        time: The emulated time at which the work before the last record is complete; None if the event was never
            recorded, or was last recorded in a capture.
        capture: The capture in which the event was last recorded; None if the last record was outside captures.
        places: The nodes of that capture for which the event stands.
        operation: The operation of the late schedule that is done when the event is complete.
        timed: Whether ``cudaEventElapsedTime`` takes the event.
        interprocess: Whether the event has an IPC handle.
    """

    __slots__ = ("capture", "device", "handle", "interprocess", "operation", "places", "time", "timed")

    def __init__(self, handle: int, device: int, flags: int) -> None:
        self.handle = handle
        self.device = device
        self.timed = not flags & EVENT_DISABLE_TIMING
        self.interprocess = bool(flags & EVENT_INTERPROCESS)
        self.time: int | None = None
        self.capture: Capture | None = None
        self.places: Places = frozenset()
        self.operation: Operation | None = None


class ExternalRecord(Node):
    """The record of an event at every launch of a graph.

    Args:
        event: The event.

    Attributes:
        event: The event.
    """

    def __init__(self, event: Event) -> None:
        super().__init__("event record", kind="event_record")
        self.event = event
        self.event_handle = event.handle

    def complete(self, start: int) -> int:
        """Return ``start``, which becomes the time of the event."""
        self.event.time, self.event.capture = start, None
        return start


class ExternalWait(Node):
    """The wait, at every launch of a graph, for the last record of an event.

    Args:
        event: The event.

    Attributes:
        event: The event.
    """

    def __init__(self, event: Event) -> None:
        super().__init__("event wait", kind="wait_event")
        self.event = event
        self.event_handle = event.handle

    def complete(self, start: int) -> int:
        """Return ``start``, or the time of the event if that is later."""
        return max(start, self.event.time or 0)


class Events:
    """The events of all devices.

    Args:
        handles: Gives the handles of events.
        captures: The captures, which forbid some calls.

    Attributes:
        by_handle: The events that exist.
    """

    def __init__(self, handles: Handles, captures: Captures) -> None:
        self.by_handle: dict[int, Event] = {}
        self._handles = handles
        self._captures = captures

    def create(self, device: int, flags: int) -> int:
        """Create an event on ``device`` and return its handle."""
        handle = self._handles.new()
        self.by_handle[handle] = Event(handle, device, flags)
        return handle

    def find(self, handle: int, call: Call) -> Event:
        """Return the event ``handle``.

        Raises:
            AcceleratorError: The event was destroyed (709), or never existed (400).
        """
        return self.by_handle.get(handle) or self.refuse(handle, call)

    def observe(self, handle: int, call: Call) -> Event:
        """Return the event ``handle`` for a call that looks at its progress, which captures forbid.

        Raises:
            AcceleratorError: The event was destroyed (709), never existed (400), was recorded in a capture that has
                ended (1) or is in progress (907), or a capture forbids such calls (900).
        """
        event = self.by_handle.get(handle) or self.refuse(handle, call)
        if event.capture is not None:
            if not event.capture.active:
                raise failure(Status.INVALID_VALUE, call)
            raise event.capture.invalidate(call, Status.CAPTURED_EVENT)
        if self._captures.in_progress:
            self._captures.forbid_unsafe(call)
        return event

    def refuse(self, handle: int, call: Call) -> NoReturn:
        """Refuse ``handle``, which names no event.

        Raises:
            AcceleratorError: The event was destroyed (709), or never existed (400).
        """
        destroyed = self._handles.was_given(handle)
        raise failure(Status.CONTEXT_IS_DESTROYED if destroyed else Status.INVALID_RESOURCE_HANDLE, call)
