"""What CUDA and CuPy keep for each thread: the current device, and the current stream of every device."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tcuda._runtime.protocol import CurrentStream


class DefaultStream(NamedTuple):
    """The default stream of every device, as CuPy's ``Stream.null`` is."""

    ptr: int = 0
    device_id: int = -1


DEFAULT_STREAM = DefaultStream()


class Thread(threading.local):
    """The state of this thread.

    Attributes:
        device: The current device.
        handles: The handles of libraries that it was given, by library and device.
    """

    def __init__(self, devices: int) -> None:
        self.device = 0
        self.handles: dict[tuple[str, int], int] = {}
        # As in CuPy: what use() makes current is not on the stack that the end of a with block goes back to.
        self._current: list[CurrentStream] = [DEFAULT_STREAM] * devices
        self._entered: list[list[CurrentStream]] = [[DEFAULT_STREAM] for _ in range(devices)]
        self._entered_on: list[int] = []

    def current(self, device: int) -> CurrentStream:
        """Return the current stream of ``device``, of the current one for -1."""
        return self._current[self.device if device == -1 else device]

    def use(self, stream: CurrentStream) -> None:
        """Make ``stream`` current."""
        self._check(stream)
        self._current[self.device] = stream

    def enter(self, stream: CurrentStream) -> None:
        """Make ``stream`` current until :meth:`leave`."""
        self._check(stream)
        self._entered[self.device].append(stream)
        self._entered_on.append(self.device)
        self._current[self.device] = stream

    def leave(self) -> None:
        """Make current what was entered before."""
        device = self._entered_on.pop()
        self._entered[device].pop()
        self._current[device] = self._entered[device][-1]

    def _check(self, stream: CurrentStream) -> None:
        if stream.device_id not in (-1, self.device):
            raise RuntimeError(  # CuPy's error, for this is its rule and not CUDA's
                f"The device that the stream is created on ({stream.device_id}) does not match with the current "
                f"device ({self.device})"
            )
