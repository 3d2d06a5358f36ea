"""Streams in the form that CuPy takes."""

from __future__ import annotations


class Handle:
    """A stream that CuPy can launch on, make current, and hold by a weak reference.

    Attributes:
        ptr: The ``cudaStream_t``.
        device_id: The device of the stream; -1 if CuPy does not need the device.
    """

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr = ptr
        self.device_id = device_id
