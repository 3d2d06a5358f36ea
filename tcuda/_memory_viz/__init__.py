"""An allocator snapshot as one page of HTML that needs no network.

A snapshot is what ``torch.cuda.memory._snapshot()`` returns, from tcuda or from torch.
"""

from __future__ import annotations

from tcuda._memory_viz.device import Device, devices
from tcuda._memory_viz.page import page, render
from tcuda._memory_viz.read import Snapshot, read_snapshot

__all__ = ["Device", "Snapshot", "devices", "page", "read_snapshot", "render"]
