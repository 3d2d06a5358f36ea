"""Emulated devices: the protocol ``Runtime`` without a GPU."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda._runtime.emulated.runtime import EmulatedRuntime
from tcuda._runtime.emulated.settings import from_environment, parse_memory, parse_schedule

if TYPE_CHECKING:
    from tcuda._runtime.emulated.settings import Schedule


def make(devices: int, memory: int, schedule: Schedule) -> EmulatedRuntime:
    """Return the runtime of ``devices`` devices with ``memory`` bytes each.

    Args:
        devices: The number of devices.
        memory: The bytes of memory of each device.
        schedule: The name of the schedule, and the seed.

    Raises:
        TypeError: ``devices`` or ``memory`` is not an integer.
        ValueError: ``devices`` or ``memory`` is too large, or not positive.
    """
    name, seed = schedule
    if name == "eager":
        return EmulatedRuntime(devices, memory)
    from tcuda._runtime.emulated.late_runtime import LateRuntime  # here, because few programs need the module

    return LateRuntime(devices, memory, seed)


def made_from_environment() -> EmulatedRuntime:
    """Return the runtime of the devices that the environment asks for.

    Raises:
        ValueError: The value of a variable is not allowed.
    """
    devices, memory = from_environment(os.environ)
    return make(devices, memory, parse_schedule(None, None, os.environ))


__all__ = ["EmulatedRuntime", "from_environment", "made_from_environment", "make", "parse_memory", "parse_schedule"]
