"""Emulated devices: the protocol ``Runtime`` without a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._runtime.visible_devices import VARIABLE, visible
from tcuda.emulation.runtime.devices import uuid_of
from tcuda.emulation.runtime.runtime import EmulatedRuntime
from tcuda.emulation.runtime.settings import check, from_environment, parse_memory, parse_schedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcuda._core import RaceDetector
    from tcuda.emulation.runtime.settings import Schedule


def make(devices: int, memory: int, schedule: Schedule, visible: Sequence[int] | None = None) -> EmulatedRuntime:
    """Return the runtime of ``devices`` devices with ``memory`` bytes each.

    Args:
        devices: The number of devices.
        memory: The bytes of memory of each device.
        schedule: The name of the schedule, and the seed.
        visible: The devices that the process sees, in their order for the process; all devices if None.

    Raises:
        TypeError: ``devices`` or ``memory`` is not an integer.
        ValueError: ``devices`` or ``memory`` is too large, or not positive.
    """
    name, seed = schedule
    if name == "eager":
        return EmulatedRuntime(devices, memory, visible)
    from tcuda.emulation.runtime.late_runtime import LateRuntime  # here, because few programs need the module

    return LateRuntime(devices, memory, seed, visible)


def made_from_environment(environ: Mapping[str, str], *, only_visible: bool) -> EmulatedRuntime:
    """Return the runtime of the devices that the environment asks for, and that ``CUDA_VISIBLE_DEVICES`` shows.

    Args:
        environ: The environment.
        only_visible: Whether ``CUDA_VISIBLE_DEVICES`` may hide all devices. A program that runs on emulated devices
            because the variable hides all GPUs sees all emulated devices.

    Raises:
        ValueError: The value of a variable is not allowed.
    """
    devices, memory = from_environment(environ)
    check(devices, memory)
    seen = visible(environ.get(VARIABLE), [f"GPU-{uuid_of(ordinal)}" for ordinal in range(devices)])
    return make(devices, memory, parse_schedule(None, None, environ), seen if seen or only_visible else None)


def watch_races(runtime: EmulatedRuntime, detector: RaceDetector | None) -> None:
    """Report to ``detector`` all streams now, and from then on every stream, event, operation and graph launch.

    Args:
        runtime: The runtime in use.
        detector: The race detector; None ends the watch.
    """
    runtime.watchRaces(detector)


__all__ = [
    "EmulatedRuntime",
    "check",
    "from_environment",
    "made_from_environment",
    "make",
    "parse_memory",
    "parse_schedule",
    "watch_races",
]
