"""The default stream, which is current on each device at first."""

from __future__ import annotations

from typing import NamedTuple


class DefaultStream(NamedTuple):
    """The default stream of every device, like ``Stream.null`` of CuPy."""

    ptr: int = 0
    device_id: int = -1


DEFAULT_STREAM = DefaultStream()
