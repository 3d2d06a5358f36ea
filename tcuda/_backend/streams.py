"""Streams, as an array library sees them."""

from __future__ import annotations

from typing import Protocol


class CurrentStream(Protocol):
    """A stream that can be current: ``cupy.cuda.Stream``, ``tcuda.Stream``, or any object with these attributes.

    Attributes:
        ptr: The ``cudaStream_t``.
        device_id: The device of the stream; -1 for a default stream, which every device has.
    """

    @property
    def ptr(self) -> int: ...
    @property
    def device_id(self) -> int: ...
