"""Devices, and facts about the current device (``cupy.cuda.device``)."""

from __future__ import annotations

from tcuda._process.lazy import backend, cuda
from tcuda.emulation.cuda import runtime
from tcuda.emulation.devices.device import Device


def get_device_id() -> int:
    """Return the index of the current device."""
    return cuda.getDevice()


def get_compute_capability() -> str:
    """Return the compute capability of the current device, such as ``"90"``."""
    return Device().compute_capability


def get_cublas_handle() -> int:
    """Return a number for this thread and the current device, which no library accepts as a handle."""
    return backend.blas_handle()


def get_cusolver_handle() -> int:
    """Return a number for this thread and the current device, which no library accepts as a handle."""
    return backend.solver_handle()


def from_pointer(ptr: int) -> Device:
    """Return the device in whose memory the address ``ptr`` lies."""
    return Device(runtime.pointerGetAttributes(ptr).device)


__all__ = ["Device", "from_pointer", "get_compute_capability", "get_cublas_handle", "get_cusolver_handle",
           "get_device_id"]  # fmt: skip
