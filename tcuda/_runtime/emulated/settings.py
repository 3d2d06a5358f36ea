"""The number of emulated devices, and their memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_DEVICES = 64
_MAX_MEMORY = 1 << 40
_MAX_DIGITS = 15
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def from_environment(environ: Mapping[str, str]) -> tuple[int, int]:
    """Return the values of ``TCUDA_EMULATED_DEVICES`` and, in bytes, ``TCUDA_EMULATED_MEMORY``.

    Raises:
        ValueError: The value of a variable is not a number of devices, or not a size of memory.
    """
    devices = environ.get("TCUDA_EMULATED_DEVICES", "1")
    if not (devices.isascii() and devices.isdecimal() and len(devices) <= _MAX_DIGITS):
        shown = devices if len(devices) <= 40 else f"{devices[:40]}..."
        raise ValueError(f"TCUDA_EMULATED_DEVICES is {shown!r}; it takes a number of devices, such as 2.")
    return int(devices), parse_memory(environ.get("TCUDA_EMULATED_MEMORY", "2GiB"))


def check(devices: int, memory: int) -> None:
    """Refuse numbers of devices and sizes of memory that cannot be emulated.

    Raises:
        TypeError: ``devices`` or ``memory`` is not an integer.
        ValueError: ``devices`` or ``memory`` is too large, or not positive.
    """
    for name, number in (("devices", devices), ("memory", memory)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name} is {number!r}, a {type(number).__name__}; it takes an integer.")
    if not 0 < devices <= _MAX_DEVICES:
        raise ValueError(f"Cannot emulate {devices} devices; 1 to {_MAX_DEVICES} are possible.")
    if memory <= 0:
        raise ValueError(f"Cannot emulate a device with {memory} bytes of memory; give it at least 1.")
    if memory > _MAX_MEMORY:
        raise ValueError(f"Cannot emulate devices with more than {_MAX_MEMORY} bytes of memory, which is 1 TiB.")


def parse_memory(size: int | str) -> int:
    """Return ``size`` in bytes: a number, or a text such as ``"512MiB"`` or ``"2GiB"``.

    Raises:
        TypeError: ``size`` is neither a number of bytes nor a text.
        ValueError: The text is not a size.
    """
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    if not isinstance(size, str):
        raise TypeError(
            f"A memory size is a number of bytes or a text such as '2GiB'; got {size!r}, a {type(size).__name__}."
        )
    digits = rf"\d{{1,{_MAX_DIGITS}}}"
    match = re.fullmatch(rf"\s*({digits}(?:\.{digits})?)\s*([KMG]?I?B?)\s*", size.upper(), re.ASCII)
    if match is None or match[2] not in _UNITS:
        shown = size if len(size) <= 40 else f"{size[:40]}..."
        raise ValueError(
            f"{shown!r} is not a memory size; write bytes, or KiB, MiB or GiB, such as '2GiB', with {_MAX_DIGITS} "
            "digits at most."
        )
    return int(float(match[1]) * _UNITS[match[2]])
