"""Casts of floating-point numbers to integers, with a GPU's numbers where the type of the integers has no such number.

NumPy leaves these numbers to the processor. A GPU converts to 32 or 64 bits and takes the nearest number there. For a
type of fewer bits, the GPU then keeps the lowest bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.numbers.bfloat16 import is_bfloat16

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


def copyto(dst: npt.NDArray[Any], src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copy ``src`` to ``dst`` (``numpy.copyto``)."""
    if np.can_cast(np.result_type(src), dst.dtype, casting):  # else NumPy raises an error
        src = fitting(src, dst.dtype)
    np.copyto(dst, src, casting=casting, where=where)


def fitting(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``value`` as integers of ``dtype``, if it is an array of other numbers and ``dtype`` a type of integers.

    Other values are returned as they are. The host converts scalars, also for a GPU.
    """
    if not isinstance(value, np.ndarray) or dtype.kind not in "iu":
        return value
    if value.dtype.kind not in "fc" and not is_bfloat16(value.dtype):
        return value
    # A GPU converts half precision by way of single precision. The precision decides which integer NaN gives.
    given = np.asarray(value.astype(np.float32 if value.dtype.char in "efFE" else np.float64, copy=False))
    wide = np.iinfo(f"{dtype.kind}{8 if dtype.itemsize == 8 else 4}")
    with np.errstate(invalid="ignore"):
        rounded = np.trunc(given)
        above, below, unknown = rounded >= float(wide.max + 1), rounded < float(wide.min), np.isnan(given)
        outside = above | below | unknown
        if not outside.any():
            return given.astype(wide.dtype).astype(dtype)
        numbers = np.where(outside, 0, rounded).astype(wide.dtype)
    numbers[above] = wide.max
    numbers[below] = wide.min
    if wide.bits == 64 or given.dtype == np.float64:
        numbers[unknown] = np.array(1 << (wide.bits - 1), f"u{wide.bits // 8}").view(wide.dtype)
    return numbers.astype(dtype)


def unsafely(function: Callable[..., Any]) -> Callable[..., None]:
    """Return ``function``, a function of each element, with casts of its inputs to ``dtype`` and of its results."""

    def compute(*inputs: Any, out: Sequence[npt.NDArray[Any]], dtype: Any = None, **options: Any) -> None:
        if dtype is not None:
            inputs = tuple([fitting(value, np.dtype(dtype)) for value in inputs])
            options["dtype"] = dtype
        results = function(*inputs, **options)
        for target, result in zip(out, results if isinstance(results, tuple) else (results,), strict=True):
            copyto(target, result, "unsafe")

    compute.__name__ = function.__name__
    return compute
