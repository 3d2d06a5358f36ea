"""Streams of an emulated runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._runtime.protocol import STREAM_NON_BLOCKING

if TYPE_CHECKING:
    from tcuda._runtime.emulated import EmulatedRuntime


def new_stream(r: EmulatedRuntime, flags: int = STREAM_NON_BLOCKING) -> int:
    """Return the handle of a new stream on the current device."""
    return r.streamCreateWithPriority(flags, 0)
