"""A stream as a timeline: the work that was enqueued is complete at a time of the emulated clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import _core
from tcuda._runtime.protocol import STREAM_NON_BLOCKING
from tcuda.emulation.runtime.costs import MULTIPROCESSORS

if TYPE_CHECKING:
    from tcuda.emulation.runtime.captures import Capture
    from tcuda.emulation.runtime.schedule import Operation


class Timeline(_core.EmulatedTimeline):
    """A stream.

    Args:
        handle: The ``cudaStream_t``.
        device: The device on which the stream is created.
        flags: ``STREAM_DEFAULT`` or ``STREAM_NON_BLOCKING``.
        priority: The answer of ``cudaStreamGetPriority``; the model of time leaves priorities out.
        multiprocessors: The number of multiprocessors that the kernels of the stream run on.

    Attributes:
        blocking: Whether the stream and the default stream of its device wait for each other.
        capture: The capture in which the stream takes part.
        last: The last operation of the stream in the late schedule.
    """

    __slots__ = ("capture", "flags", "handle", "last", "priority")

    def __init__(
        self,
        handle: int,
        device: int,
        flags: int,
        priority: int = 0,
        multiprocessors: int = MULTIPROCESSORS,
    ) -> None:
        super().__init__()
        self.handle = handle
        self.device = device
        self.flags = flags
        self.priority = priority
        self.multiprocessors = multiprocessors
        self.blocking = not flags & STREAM_NON_BLOCKING
        self.capture: Capture | None = None
        self.last: Operation | None = None
