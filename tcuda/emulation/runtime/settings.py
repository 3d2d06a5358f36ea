"""The settings of emulated devices: their number, their memory, and the time at which their work is done."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcuda._base.messages import similar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    Schedule: TypeAlias = tuple[str, int]

MOST_DEVICES = 64
_MAX_MEMORY = 1 << 40
_MAX_DIGITS = 15
_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}

SCHEDULES = ("eager", "late")
_MAX_SEED = (1 << 32) - 1


def from_environment(environ: Mapping[str, str]) -> tuple[int, int]:
    """Return the values of ``TCUDA_EMULATED_DEVICES`` and, in bytes, ``TCUDA_EMULATED_MEMORY``.

    Raises:
        ValueError: The value of a variable is not a number of devices, or not a size of memory.
    """
    devices = environ.get("TCUDA_EMULATED_DEVICES") or "1"
    if not (devices.isascii() and devices.isdecimal() and len(devices) <= _MAX_DIGITS):
        shown = devices if len(devices) <= 40 else f"{devices[:40]}..."
        raise ValueError(f"TCUDA_EMULATED_DEVICES is {shown!r}; it takes a number of devices, such as 2.")
    try:
        return int(devices), parse_memory(environ.get("TCUDA_EMULATED_MEMORY") or "2GiB")
    except ValueError as error:
        raise ValueError(f"TCUDA_EMULATED_MEMORY: {error}") from None


def schedule_of_environment(environ: Mapping[str, str]) -> Schedule:
    """Return the name and the seed in ``TCUDA_EMULATED_SCHEDULE``, which is such as ``late`` or ``late:7``.

    Raises:
        ValueError: The value of the variable is no schedule.
    """
    text = environ.get("TCUDA_EMULATED_SCHEDULE") or "eager"
    name, colon, seed = text.partition(":")
    digits = seed.isascii() and seed.isdecimal() and len(seed) <= _MAX_DIGITS and int(seed) <= _MAX_SEED
    if name not in SCHEDULES or (colon and not (name == "late" and digits)):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise ValueError(
            f"TCUDA_EMULATED_SCHEDULE is {shown!r}; it can be 'eager' or 'late', or 'late:7' with a seed from 0 to "
            f"{_MAX_SEED}.{similar(name, SCHEDULES)}"
        )
    return name, int(seed or 0)


def parse_schedule(schedule: str | None, seed: int | None, environ: Mapping[str, str]) -> Schedule:
    """Return the name of the schedule, and the seed.

    Args:
        schedule: The name; None for that in the environment.
        seed: The seed; None for that in the environment, or for 0 if ``schedule`` is given.
        environ: The environment.

    Raises:
        TypeError: ``schedule`` is not a text, or ``seed`` is not an integer.
        ValueError: ``schedule`` is no schedule, or ``seed`` is out of range.
    """
    if schedule is not None and not isinstance(schedule, str):
        raise TypeError(f"schedule is {schedule!r}, a {type(schedule).__name__}; it takes 'eager' or 'late'.")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise TypeError(f"seed is {seed!r}, a {type(seed).__name__}; it takes an integer.")
    if schedule is not None and schedule not in SCHEDULES:
        raise ValueError(f"schedule is {schedule!r}; it can be 'eager' or 'late'.")
    if seed is not None and not 0 <= seed <= _MAX_SEED:
        raise ValueError(f"seed is {seed}; it can be 0 to {_MAX_SEED}.")
    name, number = (schedule, 0) if schedule is not None else schedule_of_environment(environ)
    return name, number if seed is None else seed


def check(devices: int, memory: int) -> None:
    """Refuse numbers of devices and sizes of memory that cannot be emulated.

    Raises:
        TypeError: ``devices`` or ``memory`` is not an integer.
        ValueError: ``devices`` or ``memory`` is too large, or not positive.
    """
    for name, number in (("devices", devices), ("memory", memory)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name} is {number!r}, a {type(number).__name__}; it takes an integer.")
    if not 0 < devices <= MOST_DEVICES:
        raise ValueError(f"Cannot emulate {devices} devices; 1 to {MOST_DEVICES} are possible.")
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
