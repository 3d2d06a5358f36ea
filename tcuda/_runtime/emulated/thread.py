"""What CUDA and CuPy keep for each thread: the current device, and the current stream of every device."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from tcuda._runtime.protocol import CurrentStream


class DefaultStream(NamedTuple):
    """The default stream of every device, as CuPy's ``Stream.null`` is."""

    ptr: int = 0
    device_id: int = -1


DEFAULT_STREAM = DefaultStream()


_Entered: TypeAlias = "tuple[int, CurrentStream, _Entered] | None"
"""The stream that was entered last, with the device that was current then, and those that were entered before."""


class Thread(threading.local):
    """The state of this thread.

    Each method either changes it, by one assignment after which it returns, or raises: a signal handler that raises in
    the middle leaves the state as it was.

    Attributes:
        device: The current device.
        handles: The handles of libraries that it was given, by library and device.
    """

    def __init__(self, devices: int) -> None:
        self.device = 0
        self.handles: dict[tuple[str, int], int] = {}
        # As in CuPy: what use() makes current is not on the stack that the end of a with block goes back to.
        self._streams: tuple[tuple[CurrentStream, ...], _Entered] = (DEFAULT_STREAM,) * devices, None

    def current(self, device: int = -1) -> CurrentStream:
        """Return the current stream of ``device``, of the current one for -1."""
        return self._streams[0][self.device if device == -1 else device]

    def use(self, stream: CurrentStream) -> None:
        """Make ``stream`` current."""
        self._check(stream)
        current, entered = self._streams
        self._streams = _with(current, self.device, stream), entered

    def enter(self, stream: CurrentStream) -> None:
        """Make ``stream`` current until :meth:`leave`."""
        self._check(stream)
        current, entered = self._streams
        device = self.device
        self._streams = _with(current, device, stream), (device, stream, entered)

    def leave(self) -> None:
        """Make current what was entered before.

        Raises:
            IndexError: No stream was entered that was not left.
        """
        current, entered = self._streams
        if entered is None:
            raise IndexError("no stream was entered in this thread that was not left")
        device, _, outer = entered
        before = outer
        while before is not None and before[0] != device:
            before = before[2]
        self._streams = _with(current, device, DEFAULT_STREAM if before is None else before[1]), outer

    def _check(self, stream: CurrentStream) -> None:
        if stream.device_id not in (-1, self.device):
            raise RuntimeError(  # CuPy's error, for this is its rule and not CUDA's
                f"The device that the stream is created on ({stream.device_id}) does not match with the current "
                f"device ({self.device})"
            )


def _with(current: tuple[CurrentStream, ...], device: int, stream: CurrentStream) -> tuple[CurrentStream, ...]:
    return *current[:device], stream, *current[device + 1 :]
