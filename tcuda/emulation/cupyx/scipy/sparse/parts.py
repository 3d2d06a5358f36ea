"""The arrays of new sparse matrices, checked as CuPy checks them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.sparse.calls import wait_for_contents
from tcuda.emulation.cupyx.scipy.sparse.layout import DTYPES
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

_MOST = np.iinfo(np.int32).max


def supported(dtype: Any) -> np.dtype[Any]:
    """Return ``dtype``.

    Raises:
        ValueError: No sparse matrix has elements of this type.
    """
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind.char not in DTYPES:
        raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")
    return kind


def get_index_dtype(arrays: Any = (), maxval: Any = None, check_contents: bool = False) -> Any:
    """Return the type of indices that holds the indices in ``arrays``, ``int32`` or ``int64``.

    Args:
        arrays: The arrays.
        maxval: A number that the type must hold, too.
        check_contents: Whether the indices are looked at, and not only their types.
    """
    if maxval is not None and maxval > _MOST:
        return np.int64
    for array in (arrays,) if isinstance(arrays, Strided) else arrays:
        given = array if isinstance(array, Strided) else creation.asarray(array)
        if np.can_cast(given.dtype, np.int32):
            continue
        if check_contents and given.size == 0:
            continue
        if check_contents and given.dtype.kind in "iu":
            low, high = bounds_of(given)
            if low >= -_MOST - 1 and high <= _MOST:
                continue
        return np.int64
    return np.int32


def bounds_of(*arrays: Any) -> list[int]:
    """Return the least and the largest number of each array; waits for the current stream."""
    wait_for_contents("sparse matrix")
    return [int(FUNCTIONS[name](array)) for array in arrays for name in ("min", "max")]


def safely_cast_index_arrays(A: Any, idx_dtype: Any = np.int32, msg: str = "") -> Any:  # noqa: N803
    """Return the index arrays of a sparse matrix with elements of ``idx_dtype``.

    Args:
        A: The matrix.
        idx_dtype: The type.
        msg: The end of the message of the error.

    Raises:
        ValueError: The type does not hold the indices.
    """
    kind = np.dtype(idx_dtype)
    most, what = np.iinfo(kind).max, msg or f"dtype {kind}"
    names = {"coo": ("row", "col"), "dia": ("offsets",)}.get(getattr(A, "format", ""), ("indices", "indptr"))
    if not hasattr(A, "format"):
        raise TypeError(f"Format {type(A).__name__} is not associated with index arrays.")
    arrays = [getattr(A, name) for name in names]
    for name, array in zip(names, arrays, strict=True):
        if array.size and array.dtype.itemsize > kind.itemsize and bounds_of(array)[1] > most:
            label = "coords" if A.format == "coo" else name
            raise ValueError(f"{label} values too large for {what}")
    cast = tuple(array.astype(kind, copy=False) for array in arrays)
    return cast[0] if A.format == "dia" else cast


def is_dense(value: Any) -> bool:
    """Return whether ``value`` is an array of the device."""
    return isinstance(value, Strided)


def is_vector(value: Any) -> bool:
    """Return whether ``value`` is an array of the device with one axis."""
    return isinstance(value, Strided) and value.ndim == 1


def empty(length: int, dtype: Any) -> Any:
    """Return a new array of zeros."""
    return creation.zeros(length, dtype)
