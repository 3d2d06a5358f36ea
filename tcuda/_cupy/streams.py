"""Streams as CuPy takes them."""

from __future__ import annotations


class Handle:
    """A stream that CuPy can launch on, make current, and refer to weakly.

    Attributes:
        ptr: The ``cudaStream_t``.
        device_id: The device of the stream; -1 where CuPy need not know it.
    """

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr = ptr
        self.device_id = device_id
