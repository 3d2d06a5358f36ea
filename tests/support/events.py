"""Recorded events."""

from __future__ import annotations

import tcuda


def mark() -> tcuda.Event:
    """Return a timing event that is recorded on the current stream."""
    event = tcuda.Event(enable_timing=True)
    event.record()
    return event
