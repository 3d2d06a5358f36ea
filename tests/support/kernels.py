"""Kernels of tests, and the statuses of launches on both runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tcuda

if TYPE_CHECKING:
    from collections.abc import Callable

SAXPY = r"""
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


def launch_status(call: Callable[[], object]) -> int:
    """Return the CUDA status with which ``call`` fails; 0 if ``call`` succeeds.

    CuPy reports the failure of a call to the driver with an exception of its own, which has the status.
    """
    try:
        call()
        tcuda.synchronize()
    except tcuda.AcceleratorError as error:
        return error.error_code
    except RuntimeError as error:
        status = getattr(error, "status", None)
        if status is None:
            raise
        return int(status)
    return 0
