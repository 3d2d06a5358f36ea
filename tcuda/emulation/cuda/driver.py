"""The CUDA driver (``cupy.cuda.driver``)."""

from __future__ import annotations

from tcuda._process.lazy import cuda
from tcuda.emulation.devices.driver_error import CUDADriverError


def get_build_version() -> int:
    """Return the version of CUDA that the devices emulate, such as 13000."""
    return cuda.driverGetVersion()


def _is_cuda_python() -> bool:
    """Return whether the calls go through the package cuda-python."""
    return False


__all__ = ["CUDADriverError", "get_build_version"]
