"""Gaussian elimination with the rounding of a GPU, which rounds ``a - l * u`` once.

Whether the last pivot of a nearly singular matrix is zero depends on this rounding: LAPACK on a processor finds most
matrices of rank 1 singular, and cuBLAS and cuSOLVER find nearly none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LARGEST = 64
"""The most rows of a matrix for this module, whose time grows faster than that of LAPACK."""
_SPLIT = 2.0**27 + 1


def decomposed(a: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the factors of each matrix of a stack, the places of the pivots, and the status of each matrix.

    Args:
        a: The matrices along the first axis.

    Returns:
        The lower and the upper factor in one matrix; for each column, the row with which the row of the diagonal was
        exchanged; and the number of the first pivot that is zero, counted from 1, or 0.
    """
    factors = a.copy()
    count, rows = a.shape[:2]
    stack = np.arange(count)
    pivots = np.empty((count, rows), np.int32)
    status = np.zeros(count, np.int32)
    with np.errstate(all="ignore"):
        for place in range(rows):
            column = factors[:, place:, place]
            pivots[:, place] = found = place + np.argmax(abs(column.real) + abs(column.imag), axis=1)
            upper = factors[stack, found]
            factors[stack, found] = factors[:, place]
            factors[:, place] = upper
            zero = upper[:, place] == 0
            status[zero & (status == 0)] = place + 1
            below = factors[:, place + 1 :]
            below[:, :, place] *= (1 / np.where(zero, 1, upper[:, place]))[:, None].astype(a.dtype)
            below[:, :, place + 1 :] = _less(
                below[:, :, place + 1 :], below[:, :, place, None], upper[:, None, place + 1 :]
            )
    return factors, pivots, status


def solved(factors: npt.NDArray[Any], pivots: npt.NDArray[Any], b: npt.NDArray[Any]) -> Any:
    """Return the solutions for the right sides ``b``, of which each matrix has one or several columns."""
    x = b.copy()
    stack, rows = np.arange(len(x)), x.shape[1]
    with np.errstate(all="ignore"):
        for place in range(rows):
            row = x[stack, pivots[:, place]]
            x[stack, pivots[:, place]] = x[:, place]
            x[:, place] = row
        for place in range(rows - 1):
            x[:, place + 1 :] = _less(x[:, place + 1 :], factors[:, place + 1 :, place, None], x[:, None, place])
        for place in reversed(range(rows)):
            x[:, place] /= factors[:, place, place, None]
            x[:, :place] = _less(x[:, :place], factors[:, :place, place, None], x[:, None, place])
    return x


def _less(a: npt.NDArray[Any], left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Any:
    """Return ``a - left * right``, rounded once for each real product."""
    if a.dtype.kind != "c":
        return _fused(-left, right, a)
    made = np.empty(a.shape, a.dtype)
    made.real = _fused(left.imag, right.imag, _fused(-left.real, right.real, a.real))
    made.imag = _fused(-left.imag, right.real, _fused(-left.real, right.imag, a.imag))
    return made


def _fused(x: npt.NDArray[Any], y: npt.NDArray[Any], z: npt.NDArray[Any]) -> Any:
    """Return ``x * y + z``, rounded once. The product of two single-precision numbers is exact in double precision."""
    if z.dtype == np.float32:
        return (x.astype(np.float64) * y + z).astype(np.float32)
    product = x * y
    x_high, y_high = _high(x), _high(y)
    x_low, y_low = x - x_high, y - y_high
    lost = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    total = product + z
    change = total - product
    fused = total + (((product - (total - change)) + (z - change)) + lost)
    return np.where(np.isfinite(fused), fused, total)  # the parts of the largest numbers are not finite


def _high(x: npt.NDArray[Any]) -> Any:
    """Return the upper half of the digits."""
    scaled = x * _SPLIT
    return scaled - (scaled - x)
