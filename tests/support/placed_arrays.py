"""Arrays on devices."""

from __future__ import annotations

from typing import Any

import tcuda


def on(device: int, values: Any) -> Any:
    """Return an array of a device with the elements and the layout of ``values``."""
    with tcuda.device(device):
        return tcuda.xp.array(values, order="K")


def places(arrays: Any) -> list[int]:
    """Return the index of the device of each of ``arrays``."""
    return [array.device.id for array in arrays]
