"""Streams and events of emulated devices: points and stretches of the emulated clock's time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcuda._runtime.protocol import EVENT_DISABLE_TIMING, EVENT_INTERPROCESS, STREAM_NON_BLOCKING

if TYPE_CHECKING:
    from tcuda._runtime.emulated.capture import Capture
    from tcuda._runtime.emulated.graph import Places


@dataclass(eq=False)
class Timeline:
    """A stream: what was enqueued on it is complete at ``ready``.

    Attributes:
        handle: Its ``cudaStream_t``.
        device: The device it was created on.
        flags: ``STREAM_DEFAULT`` or ``STREAM_NON_BLOCKING``.
        priority: As ``cudaStreamGetPriority`` answers; it does not change the model.
        ready: The emulated time, in nanoseconds, at which everything enqueued so far is complete.
        capture: The capture it takes part in.
    """

    handle: int
    device: int
    flags: int
    priority: int = 0
    ready: int = 0
    capture: Capture | None = None

    @property
    def blocking(self) -> bool:
        """Whether it and the legacy default stream wait for each other."""
        return not self.flags & STREAM_NON_BLOCKING


@dataclass(eq=False)
class Mark:
    """An event: the time at which the work before its last record is complete.

    Attributes:
        handle: Its ``cudaEvent_t``.
        device: The device it was created on.
        flags: The ``EVENT_...`` flags it was created with.
        time: When the recorded work is complete; None if it never was recorded, or was recorded in a capture.
        capture: The capture it was recorded in.
        places: The nodes of that capture that it stands for.
    """

    handle: int
    device: int
    flags: int
    time: int | None = None
    capture: Capture | None = None
    places: Places = frozenset()

    @property
    def timed(self) -> bool:
        """Whether ``cudaEventElapsedTime`` may ask it."""
        return not self.flags & EVENT_DISABLE_TIMING

    @property
    def interprocess(self) -> bool:
        """Whether it has an IPC handle."""
        return bool(self.flags & EVENT_INTERPROCESS)
