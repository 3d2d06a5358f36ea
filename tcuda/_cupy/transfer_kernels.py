"""The kernels of ``transfers.cuh``, compiled when they are first needed."""

from __future__ import annotations

import functools
from typing import Any

import cupy
from cupy_backends.cuda.libs import nvrtc

from tcuda._cupy import loaded_kernels
from tcuda._cupy.transfer_source import LARGE_PACK, expression
from tcuda._process.lazy import cuda

_DRIVER_WITH_LARGE_PARAMETERS, _COMPILER_WITH_LARGE_PARAMETERS = 12010, (12, 1)
"""The driver and the compiler of CUDA 12.1, which let a kernel have 32,764 bytes of parameters."""

_DEVICE_WITH_LARGE_PARAMETERS = 70

_kernels: list[Any] = []  # CuPy's objects, kept alive because the core has only their addresses


def load(device: int, kind: int, dtype: Any, count: int) -> int:
    """Return the ``CUfunction`` of a kernel on ``device``; 0 if there is none.

    Args:
        device: The device.
        kind: The kind of the kernel.
        dtype: The dtype of the elements that an addition adds.
        count: The number of arrays that an addition adds.
    """
    if kind == LARGE_PACK and not _takes_large_parameters(device):
        return 0
    found = expression(kind, dtype, count)
    return 0 if found is None else _loaded(device, *found)


def _takes_large_parameters(device: int) -> bool:
    if cuda.driverGetVersion() < _DRIVER_WITH_LARGE_PARAMETERS or nvrtc.getVersion() < _COMPILER_WITH_LARGE_PARAMETERS:
        return False
    return int(cupy.cuda.Device(device).compute_capability) >= _DEVICE_WITH_LARGE_PARAMETERS


@functools.cache
def _loaded(device: int, code: str, name: str) -> int:
    with cupy.cuda.Device(device):
        module = cupy.RawModule(code=code, options=("-std=c++17",), name_expressions=(name,))
        _kernels.append(module.get_function(name).kernel)
    loaded_kernels.launched_by_core(_kernels[-1])
    address: int = _kernels[-1].ptr
    return address
