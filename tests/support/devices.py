"""The devices, and the memory that is in use on each."""

from __future__ import annotations

import tcuda

WITHOUT_DEVICE: dict[str, str | None] = {"TCUDA_RUNTIME": None, "CUDA_VISIBLE_DEVICES": ""}
"""The environment of a process in which neither CUDA nor the emulation has a device."""


def last_device() -> int:
    """Return the index of the last device."""
    return tcuda.device_count() - 1


def allocated() -> list[int]:
    """Return the allocated bytes of each device."""
    return [tcuda.memory_allocated(index) for index in range(tcuda.device_count())]
