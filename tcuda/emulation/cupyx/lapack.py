"""Solutions of linear equations (``cupyx.lapack``) on arrays of emulated devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.arrays.functions import LINALG
from tcuda.emulation.cupyx.scipy.held import computed
from tcuda.emulation.numbers import linear_algebra

_TYPES = "fdFD"


def gesv(a: Any, b: Any) -> None:
    """Solve ``a @ x = b``, and write the solution to ``b``.

    Args:
        a: The matrix, without gaps.
        b: The right side, with one or two axes, in the order of Fortran.

    Raises:
        TypeError: The types differ, or are not supported.
        ValueError: The shapes or the orders of memory do not fit.
    """
    if a.ndim != 2:
        raise ValueError(f"a.ndim must be 2 (actual: {a.ndim})")
    if b.ndim not in (1, 2):
        raise ValueError(f"b.ndim must be 1 or 2 (actual: {b.ndim})")
    if a.shape[0] != a.shape[1]:
        raise ValueError("a must be a square matrix.")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"shape mismatch (a: {a.shape}, b: {b.shape}).")
    if a.dtype != b.dtype:
        raise TypeError(f"dtype mismatch (a: {a.dtype}, b: {b.dtype})")
    if a.dtype.char not in _TYPES:
        raise TypeError(f"unsupported dtype (actual:{a.dtype})")
    if not a.flags.forc:
        raise ValueError("a must be F-contiguous or C-contiguous.")
    if not b.flags.f_contiguous:
        raise ValueError("b must be F-contiguous.")
    b[...] = LINALG["solve"](a, b)


def gels(a: Any, b: Any) -> Any:
    """Return the ``x`` that makes the difference of ``a @ x`` and ``b`` smallest, of several the smallest ``x``.

    Raises:
        ValueError: The shapes or the types do not fit, or the type is not supported.
    """
    if a.ndim != 2:
        raise ValueError(f"a.ndim must be 2 (actual: {a.ndim})")
    if b.ndim not in (1, 2):
        raise ValueError(f"b.ndim must be 1 or 2 (actual: {b.ndim})")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"shape mismatch (a: {a.shape}, b: {b.shape}).")
    if a.dtype != b.dtype:
        raise ValueError(f"dtype mismatch (a: {a.dtype}, b: {b.dtype}).")
    if a.dtype.char not in _TYPES:
        raise ValueError(f"unsupported dtype (actual: {a.dtype})")
    return computed(_nearest, (a, b), {})


def _nearest(a: Any, b: Any) -> Any:
    return linear_algebra.lstsq(a, b)[0]


def posv(a: Any, b: Any) -> Any:
    """Return the solution of ``a @ x = b`` for matrices that are Hermitian and positive definite.

    Raises:
        LinAlgError: The shapes do not fit, or, if the program asks for errors, a matrix is not positive definite.
        ValueError: The type is not supported.
    """
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"Last 2 dimensions of the array must be square: the shape is {a.shape}")
    dtype = _common(a, b)
    return potrs(LINALG["cholesky"](a.astype(dtype)), b, True)


def potrs(L: Any, b: Any, lower: bool) -> Any:  # noqa: N803  # CuPy's name
    """Return the solution of ``a @ x = b`` from the Cholesky factor of ``a``.

    Args:
        L: The factor.
        b: The right side.
        lower: Whether the factor is in the lower triangle.

    Raises:
        ValueError: The type is not supported.
    """
    return computed(_from_factor, (L, b, lower, _common(L, b)), {})


def _common(a: Any, b: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.promote_types(np.promote_types(a.dtype, b.dtype), "f")
    if dtype.char not in _TYPES:
        raise ValueError(f"dtype must be float32, float64, complex64 or complex128 (actual: {a.dtype})")
    return dtype


def _from_factor(factor: Any, b: Any, lower: bool, dtype: np.dtype[Any]) -> Any:
    given = factor.astype(dtype)
    triangle = np.tril(given) if lower else np.tril(np.swapaxes(given, -1, -2).conj())
    right = b.astype(dtype)
    columns = right[..., None] if b.ndim < given.ndim else right
    with linear_algebra.unchecked():  # CuPy does not look at the status
        half = linear_algebra.solve(triangle, columns)
        return linear_algebra.solve(np.swapaxes(triangle, -1, -2).conj(), half).reshape(b.shape)
