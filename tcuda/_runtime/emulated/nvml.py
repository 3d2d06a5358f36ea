"""placeholder written by the telemetry work."""

from __future__ import annotations


class EmulatedNvml:
    def __init__(self, devices: object, clock: object) -> None: ...
