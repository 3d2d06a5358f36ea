"""Functions of matrices that take stacks of matrices or arrays of the host, and names that are old."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.work import creation

linalg = scipy_module("linalg")

OF_ARRAYS = ("kron",)


def taken(name: str, parameter: str, value: Any) -> Any:
    """Return the value of a parameter as an array of the device where CuPy makes one of an array of the host.

    Args:
        name: The name of the function.
        parameter: The name of the parameter.
        value: The value that the program gives.
    """
    return creation.array(value) if name == "khatri_rao" and isinstance(value, np.ndarray) else value


def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product. The name is old in CuPy: use ``cupy.kron``."""
    text = "`cupyx.scipy.linalg.kron` has been deprecated in CuPy v14. Please use `cupy.kron` instead."
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return FUNCTIONS["kron"](a, b)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
) -> Any:
    """Return the solution of ``a x = b`` with a triangular matrix, or with a stack of them and of vectors ``b``."""
    of_vectors = a.ndim > 2 and b.ndim == a.ndim - 1
    right = b[..., None] if of_vectors else b
    made = linalg.solve_triangular(a, right, trans, lower, unit_diagonal, overwrite_b, check_finite)
    return made[..., 0] if of_vectors else made
