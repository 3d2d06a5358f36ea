"""Solutions for matrices that are Hermitian and positive definite (``cupyx.linalg``), on emulated devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx import lapack
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

__all__ = ["cho_solve", "invh"]


def invh(a: Any) -> Any:
    """Return the inverse of a matrix that is Hermitian and positive definite.

    Raises:
        LinAlgError: ``a`` is no square matrix on the device, or, if the program asks for errors, is not positive
            definite.
    """
    if not isinstance(a, Strided):
        raise np.linalg.LinAlgError(f"invh() takes an array of the device, not {type(a)}")
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError(f"invh() takes a square matrix: the shape is {a.shape}")
    return lapack.posv(a, creation.asarray(np.eye(a.shape[0], dtype=np.promote_types(a.dtype, "f"))))


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Return the solution of ``a @ x = b`` from the Cholesky factor of ``a``.

    Args:
        c_and_lower: The factor, and whether the factor is in the lower triangle.
        b: The right side.
        overwrite_b: Whether the contents of ``b`` may change. They do not change here.
        check_finite: Whether to refuse numbers that are not finite.

    Raises:
        ValueError: A number is not finite, or the type is not supported.
    """
    factor, lower = c_and_lower
    if check_finite:
        count = factor.shape[-1]
        rows, columns = np.tril_indices(count, -1) if lower else np.triu_indices(count, 1)
        places = creation.asarray(rows), creation.asarray(columns)
        for given in (factor[..., places[0], places[1]], b):
            if not bool(FUNCTIONS["all"](FUNCTIONS["isfinite"](given))):
                raise ValueError("Input array contains NaN or infinity.")
    return lapack.potrs(factor, b, lower)


def __dir__() -> list[str]:
    return sorted(__all__)
