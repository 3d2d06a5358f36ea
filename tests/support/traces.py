"""Traces of memory: the events of the history."""

from __future__ import annotations

from typing import Any

from tcuda.memory import _snapshot


def events(device: int = 0) -> list[dict[str, Any]]:
    """Return what the history of a device holds, but for the segments and the snapshots."""
    return [event for event in trace_of(device) if not event["action"].startswith("segment")]


def trace_of(device: int = 0) -> list[dict[str, Any]]:
    """Return what the history of a device holds, but for the snapshots, of which this function takes one."""
    trace = _snapshot()["device_traces"][device]
    return [event for event in trace if event["action"] != "snapshot"]
