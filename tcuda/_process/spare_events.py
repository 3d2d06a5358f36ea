"""CUDA events that are kept for their next use, because CUDA takes microseconds to create them."""

from __future__ import annotations

from tcuda._process.devices import exchange_device
from tcuda._process.exit import may_call_cuda
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda

_SPARE_EVENTS = 1024


class SpareEvents:
    """Unused events of one device and one set of flags.

    An event can be recorded again as soon as no object owns the event. Earlier waits do not change, because a wait
    refers to the last record before the wait (``cudaStreamWaitEvent``).
    """

    def __init__(self, device: int, flags: int) -> None:
        self._device = device
        self._flags = flags
        self._spare: list[int] = []

    def take(self) -> int:
        """Return the handle of an event that no other object owns."""
        try:
            return self._spare.pop()
        except IndexError:
            return create_event(self._device, self._flags)

    def give_back(self, event: int) -> None:
        """Keep ``event`` for its next use."""
        if len(self._spare) < _SPARE_EVENTS:
            self._spare.append(event)
        else:
            destroy_event(event)


_spare_events: dict[tuple[int, int], SpareEvents] = {}
call_in_child(_spare_events.clear)  # a forked child cannot use the events of its parent


def spare_events(device: int, flags: int) -> SpareEvents:
    """Return the spare events of ``device`` and ``flags``."""
    key = (device, flags)
    return _spare_events.get(key) or _spare_events.setdefault(key, SpareEvents(device, flags))


def create_event(device: int, flags: int) -> int:
    """Create an event on ``device`` (``cudaEventCreateWithFlags``)."""
    previous = exchange_device(device)
    try:
        return cuda.eventCreateWithFlags(flags)
    finally:
        exchange_device(previous)


def destroy_event(event: int) -> None:
    """Destroy ``event`` (``cudaEventDestroy``).

    The call does nothing while the process ends and in a forked child, because both must not call CUDA.
    """
    if may_call_cuda():
        cuda.eventDestroy(event)
