"""The events that order the work of a receiver after the work of a sender."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.spare_events import create_event, destroy_event
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING, EVENT_INTERPROCESS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda.multiprocessing._wire import Address

_FLAGS = EVENT_DISABLE_TIMING | EVENT_INTERPROCESS
_MOST_OPEN = 256
"""The number of events of other processes that stay open for later messages."""


class EventName(NamedTuple):
    """An event in a message.

    Attributes:
        number: The number of the event in its process; CUDA may give the handle of a destroyed event to a new one.
        handle: The bytes by which another process opens the event.
    """

    number: int
    handle: bytes


class SentEvent:
    """An event of this process for which other processes wait.

    Args:
        device: The index of the device of the event, which is current.
        stream: The handle of the stream on which the event is always recorded. So a process that waits late, after the
            event was recorded again, still waits for the work that the process needs.

    Attributes:
        event: The ``cudaEvent_t``.
        name: The event in messages.
    """

    def __init__(self, device: int, stream: int) -> None:
        self._key = device, stream
        self.event = create_event(device, _FLAGS)
        self.name = EventName(next(_numbers), cuda.ipcGetEventHandle(self.event))
        _own[self.name.number] = self

    def give_back(self) -> None:
        """Let the next message use the event: the receiver of the last message waits for the event already."""
        (_spare.get(self._key) or _spare.setdefault(self._key, deque())).append(self)


_numbers = itertools.count(1)
_own: dict[int, SentEvent] = {}
_spare: dict[tuple[int, int], deque[SentEvent]] = {}
_opened: OrderedDict[tuple[Address, int], int] = OrderedDict()
_lock = threading.RLock()


def record(device: int, streams: Iterable[int]) -> list[SentEvent]:
    """Return events that mark the end of the work that ``streams`` of ``device``, the current device, have now."""
    recorded: list[SentEvent] = []
    try:
        for stream in streams:
            try:
                event = _spare[device, stream].pop()
            except (KeyError, IndexError):
                event = SentEvent(device, stream)
            recorded.append(event)
            cuda.eventRecord(event.event, stream)
    except BaseException:
        for event in recorded:
            event.give_back()
        raise
    return recorded


def wait(sender: Address, names: Iterable[EventName], stream: int) -> None:
    """Let ``stream``, which is of the current device, wait for events of another process.

    Raises:
        AcceleratorError: The sender has ended before this process has opened the events.
    """
    with _lock:
        for number, handle in names:
            event = _opened.pop((sender, number), 0) or cuda.ipcOpenEventHandle(handle)
            _opened[sender, number] = event  # the last entry is the one that was used last
            cuda.streamWaitEvent(stream, event)
        while len(_opened) > _MOST_OPEN:
            _, event = _opened.popitem(last=False)
            destroy_event(event)


def wait_for_own(names: Iterable[EventName], stream: int) -> None:
    """Let ``stream``, which is of the current device, wait for events of this process."""
    for number, _ in names:
        own = _own.get(number)
        if own is not None:
            cuda.streamWaitEvent(stream, own.event)


def destroy_unused() -> None:
    """Destroy the events that no message uses, and close those of other processes."""
    with _lock:
        while _opened:
            destroy_event(_opened.popitem()[1])
    for spare in list(_spare.values()):
        while spare:
            try:
                event = spare.pop()
            except IndexError:  # another thread has taken the last one
                break
            _own.pop(event.name.number, None)
            destroy_event(event.event)


def _forget_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _own.clear()
    _spare.clear()
    _opened.clear()


call_in_child(_forget_in_child)
