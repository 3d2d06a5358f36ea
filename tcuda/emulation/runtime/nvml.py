"""NVML for emulated devices: the part of ``pynvml`` that tcuda uses, answered from the emulated clock and memory.

Utilisation is the share of time in which a device worked. Temperature, power and clock rate follow utilisation in a
straight line from an idle to a busy value. The energy is the integral of this power over time. These figures show a
program at work, but predict no GPU.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from tcuda.emulation.runtime.costs import CLOCK_KHZ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.runtime.clock import Clock
    from tcuda.emulation.runtime.devices import EmulatedDevice

SAMPLE_PERIOD = 1_000_000_000
"""Nanoseconds of emulated time that utilisation looks back on."""

_NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

_TEMPERATURE_GPU = 0  # NVML_TEMPERATURE_GPU
_CLOCK_SM = 1  # NVML_CLOCK_SM


class Range(NamedTuple):
    """Two readings: of an idle device, and of a device that is busy all the time."""

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
    """NVML is not initialised, or was shut down."""

    value = 1
    _text = "Uninitialized"


class NVMLError_InvalidArgument(NVMLError):
    """A handle, sensor or clock does not exist."""

    value = 2
    _text = "Invalid Argument"


class NVMLError_NotFound(NVMLError):
    """No device has the UUID."""

    value = 6
    _text = "Not Found"


class NVMLError_DriverNotLoaded(NVMLError):
    """The driver is not loaded; never raised, because emulated devices need no driver."""

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
    """``nvmlProcessInfo_t``: a process, and the bytes of device memory that the process holds."""

    pid: int
    usedGpuMemory: int


class EmulatedNvml:
    """NVML over emulated devices, in the spelling of ``pynvml``; a handle is the device itself.

    As in NVML, initialisations are counted, and every other call needs an initialisation.

    Args:
        devices: The devices of the machine.
        clock: The clock.
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
        """Add one to the number of users."""
        self._initialized += 1

    def nvmlShutdown(self) -> None:
        """Take one from the number of users.

        Raises:
            NVMLError_Uninitialized: NVML has no user.
        """
        self._require_initialized()
        self._initialized -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str | bytes) -> EmulatedDevice:
        """Return the device with this UUID, which has ``GPU-`` in front.

        Raises:
            NVMLError_NotFound: No device has the UUID.
        """
        self._require_initialized()
        name = uuid.decode() if isinstance(uuid, bytes) else uuid
        for device in self._devices:
            if name == f"GPU-{device.uuid}":
                return device
        raise NVMLError_NotFound

    def nvmlDeviceGetIndex(self, handle: EmulatedDevice) -> int:
        """Return the place of the device in the order of NVML, which counts all devices of the machine."""
        return self._device(handle).ordinal

    def nvmlDeviceGetUtilizationRates(self, handle: EmulatedDevice) -> Utilization:
        """Return the share of the last second in which the device worked; every operation keeps the memory busy too."""
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
            NVMLError_InvalidArgument: ``sensor`` is not 0, the only sensor.
        """
        if sensor != _TEMPERATURE_GPU:
            raise NVMLError_InvalidArgument
        return CELSIUS.at(self._busy_percent(handle))

    def nvmlDeviceGetPowerUsage(self, handle: EmulatedDevice) -> int:
        """Return the power draw in milliwatts."""
        return MILLIWATTS.at(self._busy_percent(handle))

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: EmulatedDevice) -> int:
        """Return the energy since the beginning of the emulated time, in millijoules."""
        activity = self._device(handle).activity
        with self._clock._lock:
            now = self._clock.now()
            busy = activity.until(now)
        return (MILLIWATTS.idle * (now - busy) + MILLIWATTS.busy * busy) // _NANOSECONDS

    def nvmlDeviceGetClockInfo(self, handle: EmulatedDevice, type: int) -> int:
        """Return the clock rate of the multiprocessors in megahertz.

        Raises:
            NVMLError_InvalidArgument: ``type`` is not 1, the clock of the multiprocessors.
        """
        if type != _CLOCK_SM:
            raise NVMLError_InvalidArgument
        return MEGAHERTZ.at(self._busy_percent(handle))

    def nvmlDeviceGetComputeRunningProcesses(self, handle: EmulatedDevice) -> list[ProcessInfo]:
        """Return this process if it holds memory of the device; no other process can."""
        used = self._device(handle).memory.used
        return [ProcessInfo(os.getpid(), used)] if used else []

    def _busy_percent(self, handle: EmulatedDevice) -> int:
        activity = self._device(handle).activity
        with self._clock._lock:
            end = self._clock.now()
            start = max(0, end - SAMPLE_PERIOD)
            return 100 * activity.within(start, end) // (end - start) if end else 0

    def _device(self, handle: EmulatedDevice) -> EmulatedDevice:
        self._require_initialized()
        if handle not in self._devices:
            raise NVMLError_InvalidArgument
        return handle

    def _require_initialized(self) -> None:
        if not self._initialized:
            raise NVMLError_Uninitialized
