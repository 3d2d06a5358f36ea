"""Events as CuPy's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._process.exit import finalizer
from tcuda._process.lazy import backend, cuda
from tcuda._runtime.protocol import EVENT_BLOCKING_SYNC, EVENT_DISABLE_TIMING, EVENT_INTERPROCESS
from tcuda.emulation.devices.runtime_error import with_cupys_error

if TYPE_CHECKING:
    from tcuda._backend.streams import CurrentStream


class Event:
    """An event (``cupy.cuda.Event``), which is created on the current device.

    Args:
        block: Whether the thread sleeps in :meth:`synchronize`.
        disable_timing: Whether the event records no time.
        interprocess: Whether another process can open the event.

    Attributes:
        ptr: The ``cudaEvent_t``.

    Raises:
        ValueError: ``interprocess`` is true, and ``disable_timing`` is false.
    """

    __module__ = "tcuda.emulation.cuda"

    ptr: int = 0

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        flags = EVENT_BLOCKING_SYNC if block else 0
        flags |= EVENT_DISABLE_TIMING if disable_timing else 0
        flags |= EVENT_INTERPROCESS if interprocess else 0
        self.ptr = with_cupys_error(cuda.eventCreateWithFlags)(flags)

    def _destroy(self) -> None:
        if self.ptr:
            cuda.eventDestroy(self.ptr)

    __del__ = finalizer(_destroy)

    @property
    def done(self) -> bool:
        """Whether the work before the last record is complete."""
        return cuda.eventQuery(self.ptr) == 0

    @with_cupys_error
    def record(self, stream: CurrentStream | None = None) -> None:
        """Record the event on ``stream``; on the current stream if None.

        Raises:
            CUDARuntimeError: The stream is of another device than the event.
        """
        cuda.eventRecord(self.ptr, (backend.current_stream() if stream is None else stream).ptr)

    @with_cupys_error
    def synchronize(self) -> None:
        """Wait until the work before the last record is complete.

        Raises:
            CUDARuntimeError: A capture forbids to wait.
        """
        cuda.eventSynchronize(self.ptr)


@with_cupys_error
def get_elapsed_time(start_event: Any, end_event: Any) -> float:
    """Return the milliseconds from ``start_event`` to ``end_event``.

    Raises:
        CUDARuntimeError: An event has no time, was never recorded, or is not complete.
    """
    return cuda.eventElapsedTime(start_event.ptr, end_event.ptr)
