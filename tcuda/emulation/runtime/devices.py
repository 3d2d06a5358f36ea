"""Emulated devices: the memory, the default stream and the properties of each."""

from __future__ import annotations

import uuid
from typing import Any

from tcuda._core import EmulatedActivity, EmulatedMemory
from tcuda._runtime.protocol import STREAM_DEFAULT
from tcuda.emulation.runtime import launch_limits
from tcuda.emulation.runtime.costs import CLOCK_KHZ, MULTIPROCESSORS
from tcuda.emulation.runtime.timeline import Timeline

CAPABILITY = (9, 0)
STREAM_PRIORITY_RANGE = (0, -5)
_UUIDS = uuid.UUID("8f0c6bb4-39a8-5a5c-9d0e-7c1e6d6f7463")
"""The namespace of the UUIDs of emulated devices."""


def uuid_of(ordinal: int) -> uuid.UUID:
    """Return the UUID of the device at the place ``ordinal`` among all devices of the machine."""
    return uuid.uuid5(_UUIDS, str(ordinal))


class EmulatedDevice:
    """An emulated device.

    Args:
        index: The place of the device among the devices that the process sees; -1 if the process does not see it.
        memory: The bytes of its memory.
        ordinal: The place of the device among all devices of the machine; ``index`` if None.

    Attributes:
        index: The place of the device among the devices that the process sees.
        ordinal: The place of the device among all devices of the machine.
        memory: The memory.
        default: The legacy default stream.
        peers: The devices whose memory this device may access.
        activity: The times of its operations.
    """

    def __init__(self, index: int, memory: int, ordinal: int | None = None) -> None:
        self.index = index
        self.ordinal = index if ordinal is None else ordinal
        self.memory = EmulatedMemory(memory)
        self.default = Timeline(0, index, STREAM_DEFAULT)
        self.peers: set[int] = set()
        self.activity = EmulatedActivity()

    @property
    def uuid(self) -> uuid.UUID:
        """The UUID, which depends on the ordinal alone and so is the same at every run."""
        return uuid_of(self.ordinal)

    def can_access(self, owner: int) -> bool:
        """Return whether kernels of this device may use the memory of the device ``owner``."""
        return owner == self.index or owner in self.peers

    def properties(self) -> dict[str, Any]:
        """Return the members of ``cudaDeviceProp`` that make sense for host memory, under CuPy's keys."""
        major, minor = CAPABILITY
        return {
            "name": b"tcuda emulated device",
            "major": major,
            "minor": minor,
            "totalGlobalMem": self.memory.limit,
            "multiProcessorCount": MULTIPROCESSORS,
            "warpSize": launch_limits.WARP,
            "maxThreadsPerBlock": launch_limits.THREADS,
            "maxThreadsDim": launch_limits.BLOCK,
            "maxGridSize": launch_limits.GRID,
            "maxThreadsPerMultiProcessor": launch_limits.RESIDENT_THREADS,
            "regsPerMultiprocessor": 65536,
            "sharedMemPerBlock": launch_limits.SHARED,
            "sharedMemPerBlockOptin": launch_limits.MOST_SHARED,
            "sharedMemPerMultiprocessor": launch_limits.RESIDENT_SHARED,
            "l2CacheSize": 32 << 20,
            "clockRate": CLOCK_KHZ,
            "memoryClockRate": CLOCK_KHZ,
            "memoryBusWidth": 8192,
            "integrated": 0,
            "isMultiGpuBoard": 0,
            "pciBusID": self.ordinal,
            "pciDeviceID": 0,
            "pciDomainID": 0,
            "uuid": self.uuid.bytes,
        }
