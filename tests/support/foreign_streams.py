"""Streams and events of other libraries."""

from __future__ import annotations

from types import SimpleNamespace


class ForeignStream:
    """A stream of another library, which has only the protocol ``__cuda_stream__`` in common with tcuda."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class NumberedStream(ForeignStream):
    """A stream that names its device as streams of cuda.core do, by ``device.device_id``.

    Attributes:
        device: The device of the stream.
    """

    def __init__(self, handle: int, device_id: int) -> None:
        super().__init__(handle)
        self.device = SimpleNamespace(device_id=device_id)


class _Handle:
    """A handle that is no integer, as in the bindings of the driver."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __int__(self) -> int:
        return self._number


class ForeignEvent:
    """An event with the names of cuda.core: ``handle`` and ``sync()``.

    Attributes:
        handle: The ``cudaEvent_t``, which is no integer.
    """

    def __init__(self, handle: int) -> None:
        self.handle = _Handle(handle)

    def sync(self) -> None:
        """Wait for the event."""
        raise NotImplementedError
