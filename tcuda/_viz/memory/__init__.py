"""Allocator snapshots as pages of HTML that need no network.

A snapshot is the result of ``_snapshot()`` of tcuda or of torch.
"""

from __future__ import annotations

from tcuda._viz.memory.comparison import Comparison, compare
from tcuda._viz.memory.device import HOST, Device, busiest, devices, empty_device
from tcuda._viz.memory.page import page, render
from tcuda._viz.memory.read import Snapshot, checked, read_snapshot
from tcuda._viz.memory.words import peak_sentence, site_text

__all__ = [
    "HOST",
    "Comparison",
    "Device",
    "Snapshot",
    "busiest",
    "checked",
    "compare",
    "devices",
    "empty_device",
    "page",
    "peak_sentence",
    "read_snapshot",
    "render",
    "site_text",
]
