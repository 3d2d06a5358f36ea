"""The checks of matrices in ``cupy.linalg._util`` that libraries call."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError

from tcuda.emulation.arrays.ndarray import ndarray


def _assert_cupy_array(*arrays: Any) -> None:
    """Refuse objects that are no arrays of a device.

    Raises:
        LinAlgError: An object is of another class.
    """
    for array in arrays:
        if not isinstance(array, ndarray):
            raise LinAlgError(f"cupy.linalg only supports cupy.ndarray; got an object of {type(array)}")


def _assert_2d(*arrays: ndarray) -> None:
    """Refuse arrays that are no matrices.

    Raises:
        LinAlgError: An array has another number of axes than two.
    """
    for array in arrays:
        if array.ndim != 2:
            raise LinAlgError(f"{array.ndim}-dimensional array given. Array must be two-dimensional")


def _assert_stacked_2d(*arrays: ndarray) -> None:
    """Refuse arrays that are neither matrices nor stacks of matrices.

    Raises:
        LinAlgError: An array has fewer than two axes.
    """
    for array in arrays:
        if array.ndim < 2:
            raise LinAlgError(f"{array.ndim}-dimensional array given. Array must be at least two-dimensional")


def _assert_stacked_square(*arrays: ndarray) -> None:
    """Refuse stacks of matrices that are not square.

    Raises:
        LinAlgError: The last two axes of an array have other lengths.
    """
    for array in arrays:
        rows, columns = array.shape[-2:]
        if rows != columns:
            raise LinAlgError(f"Last 2 dimensions of the array must be square; got {rows} and {columns}")


__all__ = ["_assert_2d", "_assert_cupy_array", "_assert_stacked_2d", "_assert_stacked_square"]
