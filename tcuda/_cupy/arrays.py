"""The access of the core to CuPy's arrays."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cupy
import numpy
from cupy._core import core as cupy_core

from tcuda import _core
from tcuda._process.lazy import cuda
from tcuda._process.peers import reach

if TYPE_CHECKING:
    from collections.abc import Callable


@functools.cache
def array_addresses() -> _core.ArrayAddresses:
    """Return the object that reads the addresses of CuPy's arrays, and compares devices only if there are several."""
    pointer = cupy.cuda.MemoryPointer
    arguments = cupy.ndarray, cupy_core._ndarray_base.data, pointer.ptr
    if cuda.getDeviceCount() == 1:
        return _core.ArrayAddresses(*arguments)
    return _core.ArrayAddresses(*arguments, pointer.device_id, _reach)


def _reach(device: int, other: int) -> None:
    """Let the kernels of ``device`` use the memory of the device ``other``."""
    if not reach(device, other):
        raise ValueError(
            f"An array of the kernel is on cuda:{other}, and the current device is cuda:{device}, which cannot access "
            f"the memory of cuda:{other}. Launch under `with tcuda.device({other}):`, or copy the array."
        )


@functools.cache
def array_type() -> _core.ArrayType:
    """Return the type of CuPy's arrays.

    ``cupy.ndarray`` runs two Python functions, which only call ``_init()`` of the base. If CuPy has this method, the
    core calls the method itself, which is faster.
    """
    base = cupy_core._ndarray_base
    initialize = getattr(base, "_init", None)
    if initialize is None or not _makes_arrays(base, initialize):
        return _core.ArrayType(array_addresses())
    return _core.ArrayType(array_addresses(), base, initialize)


def _makes_arrays(base: Any, initialize: Callable[..., object]) -> bool:
    """Return whether ``initialize`` makes the same array as ``cupy.ndarray`` of an object of ``base``."""
    if cupy.ndarray.__mro__ != (cupy.ndarray, base, object):
        return False
    arguments = (2, 0, 3), numpy.float32
    made, expected = base.__new__(cupy.ndarray), cupy.ndarray(*arguments)
    try:
        initialize(made, *arguments, None, None, None)
    except (AttributeError, TypeError, ValueError):
        return False
    names = "shape", "strides", "dtype", "size", "base", "_c_contiguous", "_f_contiguous"
    return all(getattr(made, name) == getattr(expected, name) for name in names)


def scalar_type(dtype: Any) -> Any:
    """Return the scalar type of ``dtype`` if that means the same dtype, because CuPy finds scalar types faster."""
    return dtype.type if numpy.dtype(dtype.type) is dtype else dtype
