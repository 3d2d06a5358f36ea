"""The choice of the demo's devices: GPUs, or emulated devices if there is no GPU and no runtime was chosen."""

from __future__ import annotations

import os

import tcuda


def emulate_for_want_of_gpu(devices: int) -> str | None:
    """Emulate ``devices`` devices, at least two, if there is no GPU and ``TCUDA_RUNTIME`` is not set.

    tcuda itself never emulates devices without being asked: the program chooses its devices. Call this function before
    any other function that needs a device.

    Returns:
        A message for the user; None if no devices were emulated here.
    """
    if os.environ.get("TCUDA_RUNTIME") or tcuda.is_available():
        return None
    devices = max(devices, 2)
    tcuda.emulation.enable(devices)
    return f"There is no GPU: using {devices} emulated devices (TCUDA_RUNTIME=cuda would make that an error)."
