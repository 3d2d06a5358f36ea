"""NVML for emulated devices: what tcuda asks of ``pynvml``, answered from the emulated clock and memory.

Utilisation is what the devices did; temperature, power and clock rate follow it in a straight line from an idle to a
busy value. That is enough to see a program at work, and no prediction of any GPU.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from tcuda._runtime.emulated.costs import CLOCK_KHZ

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda._runtime.emulated.clock import Clock
    from tcuda._runtime.emulated.device import EmulatedDevice

SAMPLE_PERIOD = 1_000_000_000
"""Nanoseconds of emulated time that utilisation looks back on."""

_TEMPERATURE_GPU = 0  # NVML_TEMPERATURE_GPU
_CLOCK_SM = 1  # NVML_CLOCK_SM


class Range(NamedTuple):
    """A reading of an idle device and that of one which is busy all the time."""

    idle: int
    busy: int

    def at(self, percent: int) -> int:
        """Return the reading of a device that is busy ``percent`` of the time."""
        return self.idle + (self.busy - self.idle) * percent // 100


CELSIUS = Range(30, 80)
MILLIWATTS = Range(70_000, 700_000)
MEGAHERTZ = Range(300, CLOCK_KHZ // 1000)


class NVMLError(Exception):
    """A call to NVML failed (``pynvml.NVMLError``).

    Attributes:
        value: The ``nvmlReturn_t``.
    """

    value = 999
    _text = "Unknown Error"

    def __str__(self) -> str:
        return self._text


# The classes below are named as pynvml names them.


class NVMLError_Uninitialized(NVMLError):
    """NVML was not initialised, or was shut down since."""

    value = 1
    _text = "Uninitialized"


class NVMLError_InvalidArgument(NVMLError):
    """A handle, a sensor or a clock that does not exist."""

    value = 2
    _text = "Invalid Argument"


class NVMLError_NotFound(NVMLError):
    """No device has that UUID."""

    value = 6
    _text = "Not Found"


class NVMLError_DriverNotLoaded(NVMLError):
    """Never raised: emulated devices need no driver. Here so that ``except`` can name it."""

    value = 9
    _text = "Driver Not Loaded"


class Utilization(NamedTuple):
    """``nvmlUtilization_t``: percent of the sample period in which the device worked."""

    gpu: int
    memory: int


class MemoryInfo(NamedTuple):
    """``nvmlMemory_t``, in bytes."""

    total: int
    free: int
    used: int


class ProcessInfo(NamedTuple):
    """``nvmlProcessInfo_t``: a process and the bytes of device memory it has."""

    pid: int
    usedGpuMemory: int


class EmulatedNvml:
    """NVML over emulated devices, in the spelling of ``pynvml``; a handle is the device itself.

    As in NVML, initialisation is counted, and every other call needs it.
    """

    NVMLError = NVMLError
    NVMLError_DriverNotLoaded = NVMLError_DriverNotLoaded
    NVMLError_InvalidArgument = NVMLError_InvalidArgument
    NVMLError_NotFound = NVMLError_NotFound
    NVMLError_Uninitialized = NVMLError_Uninitialized

    def __init__(self, devices: Sequence[EmulatedDevice], clock: Clock) -> None:
        self._devices = devices
        self._clock = clock
        self._initialized = 0

    def nvmlInit(self) -> None:
        """Count one user more."""
        self._initialized += 1

    def nvmlShutdown(self) -> None:
        """Count one user less.

        Raises:
            NVMLError_Uninitialized: There is none.
        """
        self._require_initialized()
        self._initialized -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str | bytes) -> EmulatedDevice:
        """Return the device with this UUID, which has ``GPU-`` in front.

        Raises:
            NVMLError_NotFound: There is none.
        """
        self._require_initialized()
        name = uuid.decode() if isinstance(uuid, bytes) else uuid
        for device in self._devices:
            if name == f"GPU-{device.uuid}":
                return device
        raise NVMLError_NotFound

    def nvmlDeviceGetIndex(self, handle: EmulatedDevice) -> int:
        """Return the place of the device in NVML's own order, which is that of the emulated runtime."""
        return self._device(handle).index

    def nvmlDeviceGetUtilizationRates(self, handle: EmulatedDevice) -> Utilization:
        """Return how much of the last second the device worked; whatever it does also keeps its memory busy."""
        percent = self._busy_percent(handle)
        return Utilization(percent, percent)

    def nvmlDeviceGetMemoryInfo(self, handle: EmulatedDevice) -> MemoryInfo:
        """Return the device's memory, in bytes."""
        memory = self._device(handle).memory
        used = memory.used
        return MemoryInfo(memory.limit, memory.limit - used, used)

    def nvmlDeviceGetTemperature(self, handle: EmulatedDevice, sensor: int) -> int:
        """Return the temperature in degrees Celsius.

        Raises:
            NVMLError_InvalidArgument: ``sensor`` is not 0, the only one there is.
        """
        if sensor != _TEMPERATURE_GPU:
            raise NVMLError_InvalidArgument
        return CELSIUS.at(self._busy_percent(handle))

    def nvmlDeviceGetPowerUsage(self, handle: EmulatedDevice) -> int:
        """Return the power draw in milliwatts."""
        return MILLIWATTS.at(self._busy_percent(handle))

    def nvmlDeviceGetClockInfo(self, handle: EmulatedDevice, type: int) -> int:
        """Return the clock rate of the multiprocessors in megahertz.

        Raises:
            NVMLError_InvalidArgument: ``type`` is not 1, the multiprocessors' clock.
        """
        if type != _CLOCK_SM:
            raise NVMLError_InvalidArgument
        return MEGAHERTZ.at(self._busy_percent(handle))

    def nvmlDeviceGetComputeRunningProcesses(self, handle: EmulatedDevice) -> list[ProcessInfo]:
        """Return this process if it has memory of the device: no other one can."""
        used = self._device(handle).memory.used
        return [ProcessInfo(os.getpid(), used)] if used else []

    def _busy_percent(self, handle: EmulatedDevice) -> int:
        # A copy, because other threads go on adding to it.
        activity = self._device(handle).activity.copy()
        end = self._clock.now()
        start = max(0, end - SAMPLE_PERIOD)
        return 100 * _covered(activity, start, end) // (end - start) if end else 0

    def _device(self, handle: EmulatedDevice) -> EmulatedDevice:
        self._require_initialized()
        if handle not in self._devices:
            raise NVMLError_InvalidArgument
        return handle

    def _require_initialized(self) -> None:
        if not self._initialized:
            raise NVMLError_Uninitialized


def _covered(intervals: Iterable[tuple[int, int]], start: int, end: int) -> int:
    """Return how much of the time from ``start`` to ``end`` lies in at least one of ``intervals``."""
    covered = 0
    for first, last in sorted(intervals):
        start = max(start, first)  # what lies before has been counted, or is in no interval
        stop = min(last, end)
        if stop > start:
            covered += stop - start
            start = stop
    return covered
