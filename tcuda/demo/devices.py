"""Which devices the demo uses: GPUs, or emulated devices where there is none and nothing was chosen."""

from __future__ import annotations

import os

import tcuda


def emulate_for_want_of_gpu(devices: int) -> str | None:
    """Emulate ``devices`` devices, two at least, if there is no GPU and ``TCUDA_RUNTIME`` is not set.

    tcuda itself never does this: what a program computes on is the program's choice. To be called before anything else
    that needs a device.

    Returns:
        What to tell the user; None if devices are used as they are.
    """
    if "TCUDA_RUNTIME" in os.environ or tcuda.is_available():
        return None
    devices = max(devices, 2)
    tcuda.emulation.enable(devices)
    return f"There is no GPU: using {devices} emulated devices (TCUDA_RUNTIME=cuda would make that an error)."
