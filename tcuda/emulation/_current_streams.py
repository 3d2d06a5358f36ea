"""The current streams of each thread on emulated devices. On CUDA, CuPy stores the current streams."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from tcuda._backend.streams import CurrentStream
    from tcuda._runtime.emulated.thread import Thread


class DefaultStream(NamedTuple):
    """The default stream of every device, like ``Stream.null`` of CuPy."""

    ptr: int = 0
    device_id: int = -1


DEFAULT_STREAM = DefaultStream()


_Entered: TypeAlias = "tuple[int, CurrentStream, _Entered] | None"
"""The device that was current when a stream was entered, that stream, and the streams that were entered before."""


class _State(threading.local):
    """The state of this thread.

    Args:
        devices: The number of devices.

    Attributes:
        streams: The current stream of each device, and the stack of entered streams. As in CuPy, ``use()`` does not
            change the stack.
    """

    def __init__(self, devices: int) -> None:
        self.streams: tuple[tuple[CurrentStream, ...], _Entered] = (DEFAULT_STREAM,) * devices, None


class CurrentStreams:
    """The current streams of the calling thread, one for each device.

    Each method changes the state in one assignment, its last statement. So an exception of a signal handler leaves the
    state unchanged or completely changed.

    Args:
        devices: The number of devices.
        thread: The current device of the calling thread.

    Attributes:
        state: The state of the calling thread, for the core.
    """

    def __init__(self, devices: int, thread: Thread) -> None:
        self._thread = thread
        self.state = _State(devices)

    def current(self, device: int = -1) -> CurrentStream:
        """Return the current stream of ``device`` (-1: the current device)."""
        return self.state.streams[0][self._thread.device if device == -1 else device]

    def use(self, stream: CurrentStream) -> None:
        """Make ``stream`` current.

        Raises:
            RuntimeError: ``stream`` is not on the current device.
        """
        device = self._device_of(stream)
        current, entered = self.state.streams
        self.state.streams = _with(current, device, stream), entered

    def enter(self, stream: CurrentStream) -> None:
        """Make ``stream`` current until :meth:`leave`.

        Raises:
            RuntimeError: ``stream`` is not on the current device.
        """
        device = self._device_of(stream)
        current, entered = self.state.streams
        self.state.streams = _with(current, device, stream), (device, stream, entered)

    def leave(self) -> None:
        """Restore the stream that was entered on the same device before the last one.

        Raises:
            IndexError: Every stream that was entered has been left.
        """
        current, entered = self.state.streams
        if entered is None:
            raise IndexError("no stream was entered in this thread that was not left")
        device, _, outer = entered
        before = outer
        while before is not None and before[0] != device:
            before = before[2]
        self.state.streams = _with(current, device, DEFAULT_STREAM if before is None else before[1]), outer

    def _device_of(self, stream: CurrentStream) -> int:
        """Return the current device, which must be the device of ``stream``."""
        device = self._thread.device
        if stream.device_id not in (-1, device):
            raise RuntimeError(  # CuPy's error, because CUDA has no such rule
                f"The device that the stream is created on ({stream.device_id}) does not match with the current "
                f"device ({device})"
            )
        return device


def _with(current: tuple[CurrentStream, ...], device: int, stream: CurrentStream) -> tuple[CurrentStream, ...]:
    return *current[:device], stream, *current[device + 1 :]
