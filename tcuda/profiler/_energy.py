"""Energy: the joules that a device uses while a part of a program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._device._current import synchronize
from tcuda._device._nvml import total_energy
from tcuda._process.devices import _get_device_index

if TYPE_CHECKING:
    from types import TracebackType

    from tcuda._process.devices import DeviceArgument


class energy:
    """Context manager that measures the energy that a device uses in its block.

    The block waits for the device at its beginning and at its end, so that all work of the block counts, and no work
    from before. Measurements may nest and overlap.

    The figure is the difference of two reads of ``nvmlDeviceGetTotalEnergyConsumption``. This counter of the whole
    board counts the work of all programs, and the power of the idle board. On GPUs, the counter moves in steps, about
    every 20 to 100 milliseconds. So repeat work that is shorter than some seconds, and divide by the number of rounds.
    On emulated devices, the energy follows from the [emulated clock](../emulation.md#time), and is the same at every
    run.

    Args:
        device: The device; the device that is current at the start of the block if None.

    Attributes:
        joules: The energy so far, in steps of a millijoule, or the energy of the last block; 0.0 before the first
            block. The read does not wait for the device.

    Raises:
        RuntimeError: The device is not visible, or is capturing a graph, or NVML has no answer for the device, or the
            block was entered again before its end.
        ValueError: ``device`` is not a CUDA device, or has no counter: NVML has the counter for GPUs since Volta.

    Example:
        >>> x = xp.ones((100, 100))
        >>> with tcuda.profiler.energy() as used:
        ...     for _ in range(10):
        ...         y = x @ x
        >>> used.joules >= 0
        True
    """

    def __init__(self, device: DeviceArgument = None) -> None:
        self._device = device
        self._begin: tuple[int, int] | None = None
        """The device, and its counter at the beginning of the block that is open."""
        self._joules = 0.0

    @property
    def joules(self) -> float:
        """The energy so far, or the energy of the last block."""
        if self._begin is None:
            return self._joules
        device, counter = self._begin
        return (total_energy(device) - counter) / 1000

    def __enter__(self) -> energy:
        if self._begin is not None:
            raise RuntimeError("This measurement is already active; make a tcuda.profiler.energy() for every block.")
        device = _get_device_index(self._device, optional=True)
        synchronize(device)
        self._begin = device, total_energy(device)
        return self

    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._begin is not None
        try:
            synchronize(self._begin[0])
            self._joules = self.joules
        finally:
            self._begin = None
