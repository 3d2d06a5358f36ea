"""Events in several processes, whose states lie in a file in memory.

Each process has a clock of its own. So a record does not store the time at which the event is complete, but how many
nanoseconds of the recorder's clock are left until then. A process that sees a record for the first time adds these
nanoseconds to its own time.
"""

from __future__ import annotations

import mmap
import os
import struct
import weakref
from collections import deque
from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda._core import finalizing
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.events import Event
from tcuda.emulation.runtime.process_files import SIZE, FileUnavailable, ProcessFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._base.errors import AcceleratorError
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.clock import Clock
    from tcuda.emulation.runtime.handles import Handles

HANDLE_BYTES = 64
_MARK = b"tcudaEVT"
_PLACE = struct.Struct("<QQ")
_PAGE = 1 << 16
"""The bytes of a page: a multiple of the page size of every system."""
_WORDS = 2
_SLOTS = _PAGE // (8 * _WORDS)
_UNUSED = 256
"""A place in the file is used again only when this many places are unused: a handle stays valid for some time."""
_LEFT_BITS = 44
_LEFT = (1 << _LEFT_BITS) - 1
_VERSIONS = (1 << (64 - _LEFT_BITS)) - 1


class _Page:
    """A page of the file, mapped into this process."""

    def __init__(self, descriptor: int, number: int) -> None:
        self.words = memoryview(mmap.mmap(descriptor, _PAGE, offset=number * _PAGE)).cast("Q")


class Slot:
    """The place of an event's state in the file.

    The state is one word, so that every process reads a whole state: the version of the last record, and the
    nanoseconds that were left at that record. Another word has the number of the event, because the place is used
    again for other events.

    Args:
        page: The page.
        index: The index of the place in the file.
        event: The number of the event.
    """

    __slots__ = ("_event", "_page", "_word", "index")

    def __init__(self, page: _Page, index: int, event: int) -> None:
        self.index = index
        self._page = page
        self._event = event
        self._word = index % _SLOTS * _WORDS

    @property
    def event(self) -> int:
        """The number of the event, which no other event at the place has."""
        return self._event

    def is_valid(self) -> bool:
        """Return whether the place still belongs to the event."""
        return self._page.words[self._word] == self._event

    def read(self) -> int:
        """Return the state; 0 before the first record."""
        return self._page.words[self._word + 1]

    def write(self, left: int) -> int:
        """Note a record whose work needs ``left`` more nanoseconds, and return the new state."""
        version = (self.read() >> _LEFT_BITS) % _VERSIONS + 1
        state = version << _LEFT_BITS | min(left, _LEFT)
        if self.is_valid():
            self._page.words[self._word + 1] = state
        return state


class SharedEvent(Event):
    """An event that other processes can open, or that was opened by the handle of another process.

    Args:
        handle: The ``cudaEvent_t``.
        device: The device on which the event was created or opened.
        flags: The ``EVENT_...`` flags.
        clock: The clock.
        slot: The state in the file; None until a handle is made.

    Attributes:
        slot: The state in the file.
    """

    __slots__ = ("_clock", "_own", "_seen", "_time", "slot")

    def __init__(self, handle: int, device: int, flags: int, clock: Clock, slot: Slot | None = None) -> None:
        self._clock = clock
        self._seen = 0
        self._own = 0
        self._time: int | None = None
        self.slot = slot
        super().__init__(handle, device, flags)

    @property
    def time(self) -> int | None:
        """The emulated time of this process at which the work before the last record is complete."""
        slot = self.slot
        if slot is not None:
            state = slot.read()
            if state != self._seen and slot.is_valid():
                self._seen = state
                self._time = self._clock.now() + (state & _LEFT)
        return self._time

    @time.setter
    def time(self, time: int | None) -> None:
        self._time = time
        if self.slot is not None and time is not None:
            self._seen = self._own = self.slot.write(max(0, time - self._clock.now()))

    def is_foreign(self) -> bool:
        """Return whether another process has made the last record."""
        return self.slot is not None and self.slot.read() != self._own


class SharedEvents:
    """The events that this process shares with other processes.

    The caller holds the lock of the runtime.

    Args:
        handles: Gives the handles of events.
        clock: The clock.
    """

    def __init__(self, handles: Handles, clock: Clock) -> None:
        self._handles = handles
        self._clock = clock
        self._descriptor: int | None = None
        self._pages: list[_Page] = []
        self._slots = 0
        self._unused: deque[Slot] = deque()
        self._foreign: weakref.WeakValueDictionary[tuple[ProcessFile, int], _Page] = weakref.WeakValueDictionary()

    def create(self, device: int, flags: int) -> SharedEvent:
        """Return a new event on ``device``. Other processes can open the event by a handle."""
        return SharedEvent(self._handles.new(), device, flags, self._clock)

    def handle_of(self, event: SharedEvent, call: Call) -> bytes:
        """Return the handle of ``event``, whose state lies in the file from now on.

        Raises:
            AcceleratorError: The system has no memory that processes share (801).
        """
        if event.slot is None:
            try:
                slot = self._new_slot()
            except (AttributeError, OSError):
                raise failure(Status.NOT_SUPPORTED, call) from None
            time, event.slot = event.time, slot
            event.time = time  # stores the last record in the file
        assert self._descriptor is not None
        name = ProcessFile.of_this_process(self._descriptor)
        place = _PLACE.pack(event.slot.index, event.slot.event)
        return (_MARK + name.pack() + place).ljust(HANDLE_BYTES, b"\0")

    def open(self, handle: bytes, device: int, call: Call) -> SharedEvent:
        """Return the event of another process, as an event on ``device``.

        Raises:
            AcceleratorError: ``handle`` is no handle, or its event or its process has ended (205), ``handle`` is of
                this process (201), or the system forbids the access to that process (304).
        """

        def unknown() -> AcceleratorError:  # an error in a variable would keep the frames that the error passes
            return failure(Status.MAP_BUFFER_OBJECT_FAILED, call)

        if len(handle) != HANDLE_BYTES or not handle.startswith(_MARK):
            raise unknown()
        name = ProcessFile.unpack(handle[len(_MARK) :])
        index, event = _PLACE.unpack_from(handle, len(_MARK) + SIZE)
        number = index // _SLOTS
        page = self._foreign.get((name, number))
        if page is None:
            try:
                descriptor = name.open()
            except FileUnavailable as error:
                ended = error.status == Status.INVALID_RESOURCE_HANDLE
                raise (unknown() if ended else failure(error.status, call)) from None
            try:
                page = _Page(descriptor, number)
            except (OSError, ValueError, OverflowError):
                raise unknown() from None
            finally:
                os.close(descriptor)
            self._foreign[name, number] = page
        slot = Slot(page, index, event)
        if not slot.is_valid():
            raise unknown()
        return SharedEvent(self._handles.new(), device, EVENT_DISABLE_TIMING, self._clock, slot)

    def give_back(self, event: SharedEvent) -> None:
        """Let another event use the place of ``event``, which this process has created and now destroys."""
        if event.slot is not None:
            self._unused.append(event.slot)

    def _new_slot(self) -> Slot:
        if len(self._unused) > _UNUSED:
            old = self._unused.popleft()
            page, index, number = old._page, old.index, old.event + 1
        else:
            index, number = self._slots, 1
            page = self._page(index // _SLOTS)
            self._slots += 1
        slot = Slot(page, index, number)
        page.words[slot._word : slot._word + _WORDS] = memoryview(struct.pack("QQ", number, 0)).cast("Q")
        return slot

    def _page(self, number: int) -> _Page:
        if self._descriptor is None:
            self._descriptor = os.memfd_create("tcuda emulated events", os.MFD_CLOEXEC)
        if number == len(self._pages):
            os.ftruncate(self._descriptor, (number + 1) * _PAGE)
            self._pages.append(_Page(self._descriptor, number))
        return self._pages[number]

    @finalizing
    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # at the end of the process, `os` may be gone
        if self._descriptor is not None:
            try:  # noqa: SIM105  # `contextlib` may be gone, too
                close(self._descriptor)
            except OSError:
                pass
