"""The events of the memory history."""

from __future__ import annotations

from typing import Any

from tcuda.memory import _snapshot


def events(device: int = 0) -> list[dict[str, Any]]:
    """Return the events in the history of a device, without those of segments and snapshots."""
    return [event for event in trace_of(device) if not event["action"].startswith("segment")]


def trace_of(device: int = 0) -> list[dict[str, Any]]:
    """Return the events in the history of a device, without snapshots: this function takes a snapshot itself."""
    trace = _snapshot()["device_traces"][device]
    return [event for event in trace if event["action"] != "snapshot"]
