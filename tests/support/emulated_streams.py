"""Streams of emulated devices."""

from __future__ import annotations

import contextlib
import types
from typing import TYPE_CHECKING

from tcuda._runtime.protocol import STREAM_NON_BLOCKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.emulation.runtime import EmulatedRuntime


def new_stream(r: EmulatedRuntime, flags: int = STREAM_NON_BLOCKING) -> int:
    """Return the handle of a new stream on the current device."""
    return r.streamCreateWithPriority(flags, 0)


@contextlib.contextmanager
def temporary_stream(runtime: EmulatedRuntime) -> Iterator[types.SimpleNamespace]:
    """Yield a stream of the current device with the attributes of CuPy's streams; destroy the stream at the end."""
    handle = runtime.streamCreateWithPriority(STREAM_NON_BLOCKING, 0)
    stream = types.SimpleNamespace(ptr=handle, device_id=runtime.getDevice())
    try:
        yield stream
    finally:
        runtime.streamDestroy(handle)
