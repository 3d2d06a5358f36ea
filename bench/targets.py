"""What the calls may cost on an NVIDIA H200: one table."""

from __future__ import annotations

import math
from typing import NamedTuple


class Target(NamedTuple):
    """Bounds in nanoseconds a call. No call may cost more than torch's, whatever else bounds it.

    Attributes:
        at_most: Nanoseconds.
        over_below: Nanoseconds above what the layer below costs.
    """

    at_most: float = math.inf
    over_below: float = math.inf

    def met(self, tcuda: float, over_below: float, torch: float = math.inf) -> bool:
        """Return whether what tcuda costs, in all and above the layer below, is within all bounds."""
        return tcuda <= min(self.at_most, torch) and over_below <= self.over_below

    def __str__(self) -> str:
        bounds = [f"≤ {self.at_most:,}"] if self.at_most < math.inf else []
        bounds += [f"≤ below + {self.over_below}"] if self.over_below < math.inf else []
        return ", ".join([*bounds, "≤ torch"])


TARGETS = {
    "current_device()": Target(250),
    "device_count()": Target(250),
    "current_stream()": Target(250),
    "default_stream()": Target(250),
    "with device(0)": Target(500),
    "with stream(s)": Target(1200),
    "Stream()": Target(500),
    "Event()": Target(400),
    "event.record()": Target(600),
    "event.wait()": Target(500),
    "stream.record_event()": Target(1000),
    "stream.wait_stream(s2)": Target(900),
    "get_device_properties()": Target(300),
    "event.query()": Target(over_below=150),
    "stream.query()": Target(over_below=150),
    "event.synchronize()": Target(over_below=150),
    "stream.synchronize()": Target(over_below=150),
    "synchronize()": Target(over_below=150),
}
"""Calls that are bounded by more than torch."""
