"""The roots of covariances, from which vectors of normal numbers are made."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from numpy.linalg import LinAlgError

from tcuda.emulation.arrays.functions import FUNCTIONS, LINALG
from tcuda.emulation.numbers.error_state import errstate
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.emulation.devices.strided import Strided

_INVALID = "covariance is not positive-semidefinite, output {} invalid."


def root_of(covariance: Any, method: str, check_valid: str, tol: float) -> Any:
    """Return a matrix whose product with its transpose is ``covariance``.

    Args:
        covariance: A square matrix.
        method: How to compute the root: ``"cholesky"``, ``"eigh"`` or ``"svd"``.
        check_valid: What to do if ``covariance`` has no Cholesky factor and ``method`` needs one: ``"raise"`` an error,
            ``"warn"``, or ``"ignore"`` it, so that the root is NaN. With ``"warn"``, the root is the Cholesky factor if
            there is one, for any method.
        tol: How far below 0 an eigenvalue may be without a warning, and how far the root may be from the covariance.

    Raises:
        LinAlgError: ``covariance`` has no Cholesky factor, and ``check_valid`` is ``"raise"``.
    """
    if method != "cholesky" and check_valid != "warn":
        return _DECOMPOSITIONS[method](covariance, tol)[0]
    try:
        with errstate(linalg="raise"):
            return LINALG["cholesky"](covariance)
    except LinAlgError:
        if check_valid == "raise":
            raise LinAlgError(
                "Matrix is not positive definite; if matrix is positive-semidefinite, set 'check_valid' to 'warn'"
            ) from None
    if method == "cholesky":
        if check_valid == "warn":
            warnings.warn(_INVALID.format("*is*"), RuntimeWarning, stacklevel=3)
        return _invalid(covariance)
    root, is_valid = _DECOMPOSITIONS[method](covariance, tol)
    if not is_valid():
        warnings.warn(_INVALID.format("may be"), RuntimeWarning, stacklevel=3)
    return root


def _invalid(covariance: Any) -> Strided:
    return creation.full_like(covariance, float("nan"))


def _of_eigenvalues(covariance: Any, tol: float) -> tuple[Any, Callable[[], bool]]:
    """Return the root, and a function that returns whether no eigenvalue is below ``-tol``."""
    values, vectors = LINALG["eigh"](covariance)
    return vectors * FUNCTIONS["sqrt"](abs(values)), lambda: bool((values >= -tol).all())


def _of_singular_values(covariance: Any, tol: float) -> tuple[Any, Callable[[], bool]]:
    """Return the root, and a function that returns whether ``covariance`` is symmetric without negative eigenvalues."""
    vectors, values, others = LINALG["svd"](covariance)

    def is_valid() -> bool:
        product = FUNCTIONS["dot"](others.T * values, others)
        return bool(FUNCTIONS["allclose"](product, covariance, rtol=tol, atol=tol))

    return vectors * FUNCTIONS["sqrt"](abs(values)), is_valid


_DECOMPOSITIONS = {"eigh": _of_eigenvalues, "svd": _of_singular_values}
