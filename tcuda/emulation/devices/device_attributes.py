"""The attributes of emulated devices: the numbers of ``cudaDeviceAttr`` and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Value = int | str | tuple[str, int]

_ATTRIBUTES: dict[str, tuple[int, Value]] = {
    "MaxThreadsPerBlock": (1, "maxThreadsPerBlock"),
    "MaxBlockDimX": (2, ("maxThreadsDim", 0)),
    "MaxBlockDimY": (3, ("maxThreadsDim", 1)),
    "MaxBlockDimZ": (4, ("maxThreadsDim", 2)),
    "MaxGridDimX": (5, ("maxGridSize", 0)),
    "MaxGridDimY": (6, ("maxGridSize", 1)),
    "MaxGridDimZ": (7, ("maxGridSize", 2)),
    "MaxSharedMemoryPerBlock": (8, "sharedMemPerBlock"),
    "TotalConstantMemory": (9, 65536),
    "WarpSize": (10, "warpSize"),
    "MaxRegistersPerBlock": (12, 65536),
    "ClockRate": (13, "clockRate"),
    "MultiProcessorCount": (16, "multiProcessorCount"),
    "KernelExecTimeout": (17, 0),
    "Integrated": (18, "integrated"),
    "CanMapHostMemory": (19, 1),
    "ComputeMode": (20, 0),
    "ConcurrentKernels": (31, 1),
    "EccEnabled": (32, 0),
    "PciBusId": (33, "pciBusID"),
    "PciDeviceId": (34, "pciDeviceID"),
    "TccDriver": (35, 0),
    "MemoryClockRate": (36, "memoryClockRate"),
    "GlobalMemoryBusWidth": (37, "memoryBusWidth"),
    "L2CacheSize": (38, "l2CacheSize"),
    "MaxThreadsPerMultiProcessor": (39, "maxThreadsPerMultiProcessor"),
    "UnifiedAddressing": (41, 1),
    "PciDomainId": (50, "pciDomainID"),
    "StreamPrioritiesSupported": (78, 1),
    "MaxSharedMemoryPerMultiprocessor": (81, "sharedMemPerMultiprocessor"),
    "MaxRegistersPerMultiprocessor": (82, "regsPerMultiprocessor"),
    "ManagedMemory": (83, 0),
    "IsMultiGpuBoard": (84, "isMultiGpuBoard"),
    "ConcurrentManagedAccess": (89, 0),
    "CooperativeLaunch": (95, 0),
    "MaxSharedMemoryPerBlockOptin": (97, "sharedMemPerBlockOptin"),
    "MemoryPoolsSupported": (115, 1),
}
"""By name: the number, and the value or the place of the value in the properties of the device."""

CONSTANTS = {f"cudaDevAttr{name}": number for name, (number, _) in _ATTRIBUTES.items()}
"""The numbers of the attributes, under the names of ``cupy.cuda.runtime``."""

_VALUES: dict[int, Value] = {**dict(_ATTRIBUTES.values()), 75: "major", 76: "minor"}
"""The values by number, with the two attributes for which CuPy has no name."""


def value(number: int, properties: Mapping[str, Any]) -> int | None:
    """Return the attribute ``number`` of a device; None if there is no such attribute.

    Args:
        number: The number of the attribute.
        properties: The properties of the device.
    """
    place = _VALUES.get(number)
    return None if place is None else _read(place, properties)


def all_of(properties: Mapping[str, Any]) -> dict[str, int]:
    """Return all attributes of a device by name.

    Args:
        properties: The properties of the device.
    """
    return {name: _read(place, properties) for name, (_, place) in _ATTRIBUTES.items()}


def _read(place: Value, properties: Mapping[str, Any]) -> int:
    if isinstance(place, str):
        return int(properties[place])
    if isinstance(place, tuple):
        return int(properties[place[0]][place[1]])
    return place
