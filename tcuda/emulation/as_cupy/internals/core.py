"""The kernels of ``cupy._core`` that libraries call."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.arrays.ndarray import ndarray
from tcuda.emulation.as_cupy.internals.accelerators import (
    get_elementwise_accelerators,
    get_reduction_accelerators,
    get_routine_accelerators,
    set_elementwise_accelerators,
    set_reduction_accelerators,
    set_routine_accelerators,
)
from tcuda.emulation.numbers import casts
from tcuda.emulation.work import creation, numpy_work

_ndarray_base = ndarray  # in CuPy, the base class of the arrays that is written in Cython


def elementwise_copy(source: Any, out: Any = None) -> Any:
    """Copy the elements of ``source`` to ``out``, whatever the two types are; without ``out``, to a new array."""
    if out is None:
        return creation.array(source)
    numpy_work.modify(casts.copyto, (out, source), {"casting": "unsafe"})
    return out


__all__ = [
    "_ndarray_base",
    "elementwise_copy",
    "get_elementwise_accelerators",
    "get_reduction_accelerators",
    "get_routine_accelerators",
    "set_elementwise_accelerators",
    "set_reduction_accelerators",
    "set_routine_accelerators",
]
