"""Functions of matrices that take stacks of matrices or arrays of the host, and names that are old."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.numbers import elimination
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Mapping

linalg = scipy_module("linalg")

OF_ARRAYS = ("kron",)


def check(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse dtypes that cuSOLVER does not know.

    Args:
        name: The name of the function.
        arguments: The arguments of a call, by the names of the parameters.

    Raises:
        LinAlgError: A matrix has another number of axes than two.
        NotImplementedError: A matrix, or its factors, are no numbers of single or double precision.
        TypeError: The matrix of an exponential is of half precision.
    """
    if name == "khatri_rao":
        _require_matrices(arguments["a"], arguments["b"])
    if name == "bandwidth" and arguments["a"].size:
        _require_matrices(arguments["a"])
    matrix = arguments.get("a", arguments.get("A"))
    if name == "lu_solve":
        matrix = arguments["lu_and_piv"][0]
    dtype = getattr(matrix, "dtype", None)
    if name in ("lu", "lu_factor", "lu_solve") and dtype is not None and dtype.char not in "fdFD":
        raise NotImplementedError(
            f"{name}() takes float32, float64, complex64 and complex128 only, as in CuPy; the matrix is {dtype}."
        )
    if name == "expm" and dtype == np.float16:
        raise TypeError("float16 is unsupported in linalg: expm() takes single and double precision.")


def _require_matrices(*arrays: Any) -> None:
    for array in arrays:
        if array.ndim != 2:
            raise np.linalg.LinAlgError(f"{array.ndim}-dimensional array given. Array must be two-dimensional")


def taken(name: str, parameter: str, value: Any) -> Any:
    """Return the value of a parameter as an array of the device where CuPy makes one of what the program gives.

    Args:
        name: The name of the function.
        parameter: The name of the parameter.
        value: The value that the program gives.
    """
    if name in ("bandwidth", "lu", "lu_factor") and parameter == "a":
        return creation.asarray(value)
    of_host = isinstance(value, np.ndarray)
    if of_host and (name == "khatri_rao" or (name == "expm" and not value.size)):  # CuPy does not look into no elements
        return creation.array(value)
    return value


def bandwidth(a: Any) -> tuple[int, int]:
    """Return the numbers of diagonals below and above the main diagonal that are not all 0. SciPy lacks some dtypes."""
    rows, columns = np.nonzero(a) if a.size else ((), ())
    below = np.append(np.subtract(rows, columns), 0)
    return int(below.max()), -int(below.min())


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
    dtype = np.promote_types(a.dtype, np.float32)  # CuPy converts both to a floating-point type of the matrix
    a, b = a.astype(dtype), b.astype(dtype)
    of_vectors = a.ndim > 2 and b.ndim == a.ndim - 1
    right = b[..., None] if of_vectors else b
    made = linalg.solve_triangular(a, right, trans, lower, unit_diagonal, overwrite_b, check_finite)
    return made[..., 0] if of_vectors else made


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the factors of a matrix in one matrix, and the places of the pivots."""
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not 0 < a.shape[0] <= elimination.LARGEST:
        return linalg.lu_factor(a, overwrite_a, check_finite)
    if check_finite and not np.isfinite(a).all():
        raise ValueError("array must not contain infs or NaNs")
    factors, pivots, status = elimination.decomposed(a[None])
    if status[0]:
        warnings.warn(f"Diagonal number {status[0]} is exactly zero. Singular matrix.", RuntimeWarning, stacklevel=2)
    return factors[0], pivots[0]


def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Return the solution of ``a x = b`` from the factors of ``a``, in the type of the factors."""
    return linalg.lu_solve(lu_and_piv, b.astype(lu_and_piv[0].dtype), trans, overwrite_b, check_finite)
