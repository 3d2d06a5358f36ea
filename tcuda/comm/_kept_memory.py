"""Memory of the host that stays alive until the copies that use the memory are complete."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from tcuda._base.statuses import Status
from tcuda._core import buffer_address
from tcuda._process.captures import captures
from tcuda._process.fork import call_in_child
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda._process.spare_events import SpareEvents, spare_events
from tcuda._runtime.protocol import EVENT_DISABLE_TIMING

if TYPE_CHECKING:
    import numpy.typing as npt

in_use: deque[tuple[int, SpareEvents, npt.NDArray[Any]]] = deque()
"""For each copy that may still run: the event after the copy, the spare events that get the event back, the memory."""

call_in_child(in_use.clear)


def is_page_locked(memory: npt.NDArray[Any]) -> bool:
    """Return whether the first and the last byte of ``memory``, which has no gaps, are page-locked."""
    first = buffer_address(memory)
    return cuda.pointerIsPageLocked(first) and cuda.pointerIsPageLocked(first + memory.nbytes - 1)


def needs_keeping(memory: npt.NDArray[Any]) -> bool:
    """Return whether :func:`keep` must keep ``memory``, which has no gaps, for a copy that may still run.

    CUDA has read pageable memory before the call of the copy returns. tcuda's own allocator hands memory out again only
    when no work of a device uses the memory any more.
    """
    return not ledger().host_allocation_at(buffer_address(memory))[0] and is_page_locked(memory)


def keep(memory: npt.NDArray[Any], index: int, handle: int) -> None:
    """Keep ``memory`` alive until the work that the stream ``handle`` has now is complete.

    Args:
        memory: The memory.
        index: The device of the stream, which is current.
        handle: The stream.
    """
    if not captures:  # a query would invalidate a capture
        release()
    spares = spare_events(index, EVENT_DISABLE_TIMING)
    mark = spares.take()
    try:
        cuda.eventRecord(mark, handle)
    except BaseException:
        spares.give_back(mark)
        raise
    in_use.append((mark, spares, memory))


def release() -> None:
    """Let go of the memory of complete copies; the caller makes sure that no capture is in progress."""
    while in_use:
        try:
            used = in_use.popleft()
        except IndexError:  # another thread was faster
            return
        mark, spares, _ = used
        if cuda.eventQuery(mark) == Status.NOT_READY:
            in_use.appendleft(used)
            return
        spares.give_back(mark)
