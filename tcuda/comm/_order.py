"""The order between the work of streams on several devices."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from tcuda._device import device
from tcuda._process import waits
from tcuda._process.captures import captures, number_on, require_same_capture
from tcuda._process.lazy import backend, cuda
from tcuda._process.spare_events import spare_events
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Queue(NamedTuple):
    """A stream.

    Attributes:
        device: The device of the stream.
        handle: The handle, which means the default stream of ``device`` if it is the handle of a default stream.
    """

    device: int
    handle: int

    def wait(self, other: Queue) -> None:
        """Let later work of this stream wait for the work that ``other`` has now."""
        if other == self:
            return
        if captures:
            self.require_same_capture(other)
        spares = spare_events(other.device, EVENT_DISABLE_TIMING)
        mark = spares.take()
        try:
            with device(other.device):
                cuda.eventRecord(mark, other.handle)
            with device(self.device):
                cuda.streamWaitEvent(self.handle, mark)
        finally:
            spares.give_back(mark)

    def require_same_capture(self, other: Queue) -> None:
        """Refuse to let this stream wait if the wait would invalidate a capture.

        Raises:
            AcceleratorError: This stream captures, and ``other`` does not take part in the capture (905, or 902).
        """
        with device(other.device):
            number = number_on(other.handle)
        with device(self.device):
            require_same_capture(
                f"tcuda.comm: a wait of cuda:{self.device} for cuda:{other.device}", self.handle, number
            )


def queue(index: int) -> Queue:
    """Return the current stream of the device ``index``."""
    return Queue(index, backend.current_stream(index).ptr)


def join_captures(index: int, others: Iterable[int]) -> None:
    """Let the stream of a device take part in the captures of other devices before it allocates memory for them.

    Memory that a graph uses must come from the pool of the capture.

    Args:
        index: The device whose stream is about to do work for the streams of ``others``.
        others: The other devices.

    Raises:
        AcceleratorError: The stream of the device ``index`` captures, and the stream of another device does not take
            part in the capture.
    """
    if captures:
        here = queue(index)
        for other in others:
            here.wait(queue(other))


def settle(queues: Iterable[Queue]) -> None:
    """Wait for the work of ``queues`` after an error, so that memory of the work may be freed in any order.

    Nothing waits during a capture: the work of a capture has not begun, and the wait would invalidate the capture.
    """
    if captures:
        return
    for each in queues:
        with contextlib.suppress(RuntimeError), device(each.device):
            waits.unwatched("streamSynchronize")(each.handle)  # this wait is no wait of the program
