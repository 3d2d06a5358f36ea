"""Events that were recorded."""

from __future__ import annotations

import tcuda


def mark() -> tcuda.Event:
    """Return an event, recorded on the current stream, that knows its time."""
    event = tcuda.Event(enable_timing=True)
    event.record()
    return event
