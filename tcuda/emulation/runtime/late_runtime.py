"""Emulated devices with the late schedule: work is done only when the host waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.runtime.late_copies import LateMemory
from tcuda.emulation.runtime.late_parts import LateParts
from tcuda.emulation.runtime.late_work import LateWork
from tcuda.emulation.runtime.machine import Machine
from tcuda.emulation.runtime.runtime import EmulatedRuntime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda import _core
    from tcuda.emulation.runtime.schedule import Schedule


class LateRuntime(EmulatedRuntime):
    """Emulated devices with the late schedule.

    Args:
        devices: The number of devices.
        memory: The bytes of memory of each device.
        seed: The order of the operations that nothing orders: 0 for the later ones first, another number for a random
            order.
        visible: The devices that the process sees, in their order for the process; all devices if None.

    Attributes:
        prompt: Waits for a stream, and returns a scope in which the calling thread does work at once.
    """

    is_late = True

    def __init__(self, devices: int, memory: int, seed: int = 0, visible: Sequence[int] | None = None) -> None:
        machine = Machine(devices, memory, visible, LateMemory)
        self._work = LateWork(machine, seed)
        self._seed = seed
        self.prompt = self._work.prompt
        self._use(machine, LateParts(machine, self._work))

    @property
    def schedule(self) -> Schedule:
        """The pending work."""
        return self._work.schedule

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "TCUDA_EMULATED_SCHEDULE": f"late:{self._seed}"}

    def watchRaces(self, detector: _core.RaceDetector | None) -> None:
        self._work.settle_all()
        super().watchRaces(detector)
