"""How the core reads and makes CuPy's arrays."""

from __future__ import annotations

import functools
from typing import Any

import cupy
import numpy
from cupy._core import core as cupy_core

from tcuda import _core
from tcuda._errors import AcceleratorError
from tcuda._process.lazy import cuda
from tcuda._status import Status


@functools.cache
def array_addresses() -> _core.ArrayAddresses:
    """Return the way to the addresses of CuPy's arrays; devices are compared only if there are several."""
    pointer = cupy.cuda.MemoryPointer
    arguments = cupy.ndarray, cupy_core._ndarray_base.data, pointer.ptr
    if cuda.getDeviceCount() == 1:
        return _core.ArrayAddresses(*arguments)
    return _core.ArrayAddresses(*arguments, pointer.device_id, _reach)


def _reach(device: int, other: int) -> None:
    """Let the kernels of ``device`` use the memory of the device ``other``."""
    if not cuda.deviceCanAccessPeer(device, other):
        raise ValueError(
            f"An array of the kernel is on cuda:{other}, and the current device is cuda:{device}, which cannot access "
            f"the memory of cuda:{other}. Launch under `with tcuda.device({other}):`, or copy the array."
        )
    try:
        cuda.deviceEnablePeerAccess(other)
    except AcceleratorError as error:
        if error.error_code != Status.PEER_ACCESS_ALREADY_ENABLED:
            raise


@functools.cache
def array_type() -> _core.ArrayType:
    """Return the type of CuPy's arrays.

    ``cupy.ndarray`` runs two Python functions, which do nothing but call ``_init()`` of the base. The core calls that
    method itself, where CuPy has the method.
    """
    base = cupy_core._ndarray_base
    if type.mro(cupy.ndarray) == [cupy.ndarray, base, object] and hasattr(base, "_init"):
        return _core.ArrayType(array_addresses(), base, base._init)
    return _core.ArrayType(array_addresses())


def scalar_type(dtype: Any) -> Any:
    """Return the scalar type of ``dtype`` if that means the same dtype, because CuPy finds scalar types faster."""
    return dtype.type if numpy.dtype(dtype.type) is dtype else dtype
