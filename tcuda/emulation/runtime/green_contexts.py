"""Green contexts: a share of the multiprocessors of an emulated device, which makes its kernels slower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcuda._base.statuses import Status
from tcuda._runtime.protocol import STREAM_NON_BLOCKING
from tcuda.emulation.runtime.calls import failure
from tcuda.emulation.runtime.costs import MULTIPROCESSORS

if TYPE_CHECKING:
    from tcuda.emulation.runtime.calls import Call
    from tcuda.emulation.runtime.handles import Handles

_GROUP = 2
"""The multiprocessors of a share come in groups of this number."""

_SCOPES = (-1, 0, 1)

WORK_QUEUES = 8
"""The number of concurrent streams that a device has work queues for: CUDA's default."""


@dataclass(eq=False)
class GreenContext:
    """A green context.

    Attributes:
        device: The index of the device.
        multiprocessors: The number of multiprocessors.
        streams: The handles of the streams of the context. The streams may not exist yet, or no longer.
    """

    device: int
    multiprocessors: int
    streams: list[int]


class GreenContexts:
    """The green contexts of all devices.

    The caller holds the lock of the clock.

    Args:
        handles: The handles of the runtime.
    """

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._made: dict[int, GreenContext] = {}

    def create(self, device: int, multiprocessors: int, scope: int, limit: int, call: Call) -> tuple[int, int]:
        """Make a context, and return its handle and the number of its multiprocessors.

        Raises:
            AcceleratorError: An argument is out of range (1).
        """
        if not 0 <= multiprocessors <= MULTIPROCESSORS or scope not in _SCOPES or limit < 0:
            raise failure(Status.INVALID_VALUE, call)
        whole = multiprocessors or MULTIPROCESSORS
        handle = self._handles.new()
        made = self._made[handle] = GreenContext(device, -(-whole // _GROUP) * _GROUP, [])
        return handle, made.multiprocessors

    def of_stream(self, handle: int, flags: int, call: Call) -> GreenContext:
        """Return the context ``handle`` for a new stream with ``flags``.

        Raises:
            AcceleratorError: No context has the handle (400), or the stream is not non-blocking (1).
        """
        found = self._find(handle, call)
        if flags != STREAM_NON_BLOCKING:
            raise failure(Status.INVALID_VALUE, call)
        return found

    def remove(self, handle: int, call: Call) -> list[int]:
        """Remove the context ``handle``, and return the handles of its streams.

        Raises:
            AcceleratorError: No context has the handle (400).
        """
        streams = self._find(handle, call).streams
        del self._made[handle]
        return streams

    def _find(self, handle: int, call: Call) -> GreenContext:
        found = self._made.get(handle)
        if found is None:
            raise failure(Status.INVALID_RESOURCE_HANDLE, call)
        return found
