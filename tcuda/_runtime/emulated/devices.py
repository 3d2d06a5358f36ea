"""Emulated devices: the memory, the default stream and the properties of each."""

from __future__ import annotations

import uuid
from collections import deque
from typing import Any

from tcuda._core import HostMemory
from tcuda._runtime.emulated import launch_limits
from tcuda._runtime.emulated.costs import CLOCK_KHZ
from tcuda._runtime.emulated.timeline import Timeline
from tcuda._runtime.protocol import STREAM_DEFAULT

CAPABILITY = (9, 0)
STREAM_PRIORITY_RANGE = (0, -5)
_UUIDS = uuid.UUID("8f0c6bb4-39a8-5a5c-9d0e-7c1e6d6f7463")
"""The namespace of the UUIDs of emulated devices."""


class EmulatedDevice:
    """An emulated device.

    Args:
        index: The place of the device among the devices.
        memory: The bytes of its memory.

    Attributes:
        index: The place of the device.
        memory: The memory.
        default: The legacy default stream.
        blocking: The other streams for which the default stream waits, and which wait for it.
        peers: The devices whose memory this device may access.
        activity: Start and end, in emulated nanoseconds, of the latest operations.
    """

    def __init__(self, index: int, memory: int) -> None:
        self.index = index
        self.memory = HostMemory(memory)
        self.default = Timeline(0, index, STREAM_DEFAULT)
        self.blocking: list[Timeline] = []
        self.peers: set[int] = set()
        self.activity: deque[tuple[int, int]] = deque(maxlen=4096)

    @property
    def uuid(self) -> uuid.UUID:
        """The UUID, which depends on the index alone and so is the same at every run."""
        return uuid.uuid5(_UUIDS, str(self.index))

    def properties(self) -> dict[str, Any]:
        """Return the members of ``cudaDeviceProp`` that make sense for host memory, under CuPy's keys."""
        major, minor = CAPABILITY
        return {
            "name": b"tcuda emulated device",
            "major": major,
            "minor": minor,
            "totalGlobalMem": self.memory.limit,
            "multiProcessorCount": 8,
            "warpSize": 32,
            "maxThreadsPerBlock": launch_limits.THREADS,
            "maxThreadsDim": launch_limits.BLOCK,
            "maxGridSize": launch_limits.GRID,
            "maxThreadsPerMultiProcessor": 2048,
            "regsPerMultiprocessor": 65536,
            "sharedMemPerBlock": launch_limits.SHARED,
            "sharedMemPerBlockOptin": launch_limits.MOST_SHARED,
            "sharedMemPerMultiprocessor": 233472,
            "l2CacheSize": 32 << 20,
            "clockRate": CLOCK_KHZ,
            "memoryClockRate": CLOCK_KHZ,
            "memoryBusWidth": 8192,
            "integrated": 0,
            "isMultiGpuBoard": 0,
            "pciBusID": self.index,
            "pciDeviceID": 0,
            "pciDomainID": 0,
            "uuid": self.uuid.bytes,
        }
