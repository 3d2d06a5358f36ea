"""How many devices to emulate, with how much memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_DEVICES = 64
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def from_environment(environ: Mapping[str, str]) -> tuple[int, int]:
    """Return the devices and the bytes of each that ``TCUDA_EMULATED_DEVICES`` and ``TCUDA_EMULATED_MEMORY`` ask for.

    Raises:
        ValueError: One of them holds what it must not.
    """
    devices = environ.get("TCUDA_EMULATED_DEVICES", "1")
    if not (devices.isascii() and devices.isdecimal()):
        raise ValueError(f"TCUDA_EMULATED_DEVICES is {devices!r}; it takes a number of devices, such as 2.")
    return int(devices), parse_memory(environ.get("TCUDA_EMULATED_MEMORY", "2GiB"))


def check(devices: int, memory: int) -> None:
    """Refuse numbers that make no sense.

    Raises:
        ValueError: They do not.
    """
    if not 0 < devices <= _MAX_DEVICES:
        raise ValueError(f"Cannot emulate {devices} devices; 1 to {_MAX_DEVICES} are possible.")
    if memory <= 0:
        raise ValueError(f"Cannot emulate a device with {memory} bytes of memory; give it at least 1.")


def parse_memory(size: int | str) -> int:
    """Return ``size`` in bytes: a number, or a text such as ``"512MiB"`` or ``"2GiB"``.

    Raises:
        ValueError: The text is not a size.
    """
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?I?B?)\s*", size.upper())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{size!r} is not a memory size; write bytes, or KiB, MiB or GiB, such as '2GiB'.")
    return int(float(match[1]) * _UNITS[match[2]])
