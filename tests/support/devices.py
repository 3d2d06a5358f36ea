"""The devices, and the memory that is in use on each."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import tcuda

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHOUT_DEVICE: dict[str, str | None] = {"TCUDA_RUNTIME": None, "CUDA_VISIBLE_DEVICES": ""}
"""The environment of a process in which neither CUDA nor the emulation has a device."""


@contextlib.contextmanager
def synchronized() -> Iterator[None]:
    """Wait for the current device at the end of the scope, so that the errors of kernels are raised there."""
    yield
    tcuda.synchronize()


def last_device() -> int:
    """Return the index of the last device."""
    return tcuda.device_count() - 1


def allocated() -> list[int]:
    """Return the allocated bytes of each device."""
    return [tcuda.memory_allocated(index) for index in range(tcuda.device_count())]
