"""Linear algebra of NumPy arrays in the precision of the arrays, in which cuBLAS and cuSOLVER compute.

``numpy.linalg`` computes in double precision and rounds the results. Which singular values are noise, and whether a
matrix is singular, then has the answer for double precision. The loops of single precision are in the module of NumPy
that calls LAPACK.
"""

from __future__ import annotations

import contextlib
import math
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.linalg import LinAlgError

from tcuda.emulation.numbers import elimination
from tcuda.emulation.numbers.bfloat16 import is_bfloat16

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

_np: Any = np.linalg  # the stubs of NumPy are too narrow for the arguments
_loops: Any = np.linalg._umath_linalg
NAMES = (
    "cholesky",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matrix_power",
    "matrix_rank",
    "norm",
    "pinv",
    "slogdet",
    "solve",
    "svd",
    "tensorinv",
    "tensorsolve",
)
"""The functions of this module that take the places of the functions of ``numpy.linalg``."""
_SVD = type(np.linalg.svd(np.eye(1)))
_SLOGDET = type(np.linalg.slogdet(np.eye(1)))
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""The first letters of the functions of LAPACK, by the dtypes."""


class _State(threading.local):
    checks = True


_state = _State()


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Return a scope in which a matrix without a solution has infinities and NaN in its result, and gives no error."""
    before, _state.checks = _state.checks, False
    try:
        yield
    finally:
        _state.checks = before


def inv(a: Any) -> Any:
    """Return the inverse of each matrix.

    Raises:
        LinAlgError: A matrix is singular, or not square.
    """
    _require_square(a)
    kind = _common(a)
    if a.shape[-1] > elimination.LARGEST or not a.size:
        with _failing(f"{_LETTERS[kind.char]}getrf"):
            return _loops.inv(a.astype(kind), signature=f"{kind.char}->{kind.char}")
    # CuPy decomposes the transposed matrix, except a single matrix in the order of Fortran.
    turned = a.ndim > 2 or not a.flags.f_contiguous
    stack = _stack(_transposed(a) if turned else a, kind)
    factors, pivots, status = elimination.decomposed(stack)
    _require_regular(status, kind, a.ndim)
    units = np.broadcast_to(np.eye(a.shape[-1], dtype=kind), stack.shape)
    made = elimination.solved(factors, pivots, units)
    return np.ascontiguousarray(_transposed(made) if turned else made).reshape(a.shape)


def solve(a: Any, b: Any) -> Any:
    """Return ``x`` so that ``a @ x`` is ``b``.

    Raises:
        LinAlgError: A matrix is singular, or not square.
        ValueError: The shapes do not fit.
    """
    _require_square(a)
    if b.ndim == 0:
        raise ValueError("b must have at least one dimension")
    if b.ndim == 1 and a.shape[-1] != b.size:
        raise ValueError(f"a has the shape {a.shape}, so that b needs {a.shape[-1]} elements; b has {b.size}.")
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError(f"a must have the shape (..., M, M) and b (..., M, K); a has {a.shape}, and b has {b.shape}.")
    kind = _common(a, b)
    right = np.broadcast_to(b, a.shape[:-1]) if b.ndim == 1 else b
    columns = right[..., None] if b.ndim == 1 else right
    if a.shape[-1] > elimination.LARGEST or not a.size:
        with _failing(f"{_LETTERS[kind.char]}getrf"):
            signature = f"{kind.char}{kind.char}->{kind.char}"
            return _loops.solve(a.astype(kind), columns.astype(kind), signature=signature).reshape(right.shape)
    factors, pivots, status = elimination.decomposed(_stack(a, kind))
    _require_regular(status, kind, a.ndim)
    return elimination.solved(factors, pivots, _stack(columns, kind)).reshape(right.shape)


def slogdet(a: Any) -> Any:
    """Return the sign of each determinant, and the logarithm of its absolute value.

    Raises:
        LinAlgError: A matrix is not square.
    """
    _require_square(a)
    kind = _common(a)
    if a.shape[-1] > elimination.LARGEST or not a.size:
        return _SLOGDET(*_loops.slogdet(a.astype(kind), signature=f"{kind.char}->{kind.char}{kind.char.lower()}"))
    factors, pivots, status = elimination.decomposed(_stack(_transposed(a), kind))
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    odd = np.count_nonzero(pivots != np.arange(a.shape[-1]), axis=-1)
    with np.errstate(all="ignore"):
        lengths = abs(diagonal)
        if kind.kind == "f":
            odd += np.count_nonzero(diagonal < 0, axis=-1)
        sign = (1 - odd % 2 * 2).astype(kind)
        if kind.kind == "c":
            sign = sign * np.prod(diagonal / lengths, axis=-1)
        logarithm = np.log(lengths).sum(axis=-1)
    shape = a.shape[:-2]
    singular = status > 0
    return _SLOGDET(
        np.where(singular, kind.type(0), sign).reshape(shape)[()],
        np.where(singular, logarithm.dtype.type(-np.inf), logarithm).reshape(shape)[()],
    )


def det(a: Any) -> Any:
    """Return each determinant.

    Raises:
        LinAlgError: A matrix is not square.
    """
    sign, logarithm = slogdet(a)
    return sign * np.exp(logarithm)


def cholesky(a: Any) -> Any:
    """Return the lower triangle whose product with its conjugate transpose is the matrix, for each matrix.

    Raises:
        LinAlgError: A matrix is not positive definite, or not square.
    """
    _require_square(a)
    kind = _common(a)
    with _failing(f"{_LETTERS[kind.char]}potrf"):
        return _loops.cholesky_lo(a.astype(kind), signature=f"{kind.char}->{kind.char}")


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition of each matrix, or the singular values alone.

    Raises:
        LinAlgError: ``a`` is no matrix.
    """
    kind = _common(a)
    if not a.size:
        return _np.svd(a, full_matrices, compute_uv)
    _require_matrices(a)
    real = kind.char.lower()
    with np.errstate(all="ignore"):  # the values of a matrix with NaN are NaN
        if not compute_uv:
            return _loops.svd(a.astype(kind), signature=f"{kind.char}->{real}")
        loop = _loops.svd_f if full_matrices else _loops.svd_s
        return _SVD(*loop(a.astype(kind), signature=f"{kind.char}->{kind.char}{real}{kind.char}"))


def eig(a: Any) -> Any:
    """Return the eigenvalues and the eigenvectors of each matrix, which are complex."""
    result = np.linalg.eig(a)
    if not a.size:
        return result
    return type(result)(*[part.astype(_complex(part.dtype)) for part in result])


def eigvals(a: Any) -> Any:
    """Return the eigenvalues of each matrix, which are complex."""
    values = np.linalg.eigvals(a)
    return values if not a.size else values.astype(_complex(values.dtype))


def _complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.promote_types(dtype, np.complex64)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return the shortest ``x`` that makes the difference of ``a @ x`` and ``b`` smallest.

    Returns:
        The ``x``, the squared lengths of the differences, the rank of ``a``, and the singular values of ``a``.

    Raises:
        LinAlgError: The shapes do not fit.
    """
    if a.ndim != 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim > 2:
        raise LinAlgError(f"{b.ndim}-dimensional array given. Array must be at most two-dimensional")
    if a.shape[0] != b.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    u, s, vh = svd(a, full_matrices=False)
    epsilon = np.finfo(s.dtype).eps
    if rcond is None:
        rcond = epsilon * max(a.shape)
    elif rcond <= 0 or rcond >= 1:
        rcond = epsilon
    kept = s > s.max(initial=0) * s.dtype.type(rcond)
    inverses = np.divide(1, s, out=np.zeros_like(s), where=kept)
    rank = np.array(np.count_nonzero(kept), np.int32)
    x = vh.T.conj() @ ((b.T @ u.conj()) * inverses).T
    if a.shape[0] <= a.shape[1] or rank != a.shape[1]:
        return x, np.empty(0, s.dtype), rank, s
    rest = b - a @ x
    lengths = np.atleast_1d(np.square(rest.real).sum(axis=0) + np.square(rest.imag).sum(axis=0))
    return x, lengths, rank, s


def pinv(a: Any, rcond: Any = 1e-15) -> Any:
    """Return the pseudo-inverse of each matrix, without the singular values up to ``rcond`` times the largest.

    Raises:
        LinAlgError: The singular values of a matrix do not converge, or ``a`` is no matrix.
    """
    if not a.size:
        kind = a.dtype if 0 in a.shape[-2:] else _common(a)
        return np.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), kind)
    u, s, vh = svd(a.conj(), full_matrices=False)
    kept = s > np.asarray(rcond * s.max(axis=-1))[..., None]
    inverses = np.divide(1, s, out=np.zeros_like(s), where=kept)
    return np.swapaxes(vh, -1, -2) @ (inverses[..., None] * np.swapaxes(u, -1, -2))


def matrix_rank(a: Any, tol: Any = None) -> Any:
    """Return the number of the singular values above ``tol``, for each matrix.

    Raises:
        LinAlgError: The singular values of a matrix do not converge.
    """
    if a.ndim < 2:
        return (a != 0).any().astype(int)
    s = svd(a, compute_uv=False)
    if tol is None:
        tol = s.max(axis=-1, keepdims=True, initial=0) * (max(a.shape[-2:]) * np.finfo(s.dtype).eps)
    return (s > tol).sum(axis=-1, dtype=np.intp)


def cond(x: Any, p: Any = None) -> Any:
    """Return the condition number of each matrix.

    Raises:
        LinAlgError: ``x`` is empty, or no matrix is given.
    """
    if not x.size:
        raise LinAlgError("cond is not defined on empty arrays")
    with np.errstate(all="ignore"):
        if p is None or p in (2, -2):
            s = svd(x, compute_uv=False)
            number = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        else:
            _require_square(x)
            kind = _common(x)
            with unchecked():
                inverse = inv(x)
            number = np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(inverse, p, axis=(-2, -1))
            number = number.astype(kind, copy=False)
    unknown = np.isnan(number) & ~np.isnan(x).any(axis=(-2, -1))
    return np.where(unknown, number.dtype.type(np.inf), number)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of matrices or of vectors (:func:`numpy.linalg.norm`)."""
    spectral = ord in (2, -2, "nuc") if isinstance(ord, (str, int, float)) else False
    axes = tuple(range(x.ndim)) if axis is None else axis
    if not spectral or not isinstance(axes, tuple) or len(axes) != 2 or x.dtype.char not in "fF":
        return np.linalg.norm(x, ord, axis, keepdims)
    s = svd(np.moveaxis(x, axes, (-2, -1)), compute_uv=False)
    found = s.sum(axis=-1) if ord == "nuc" else s.max(axis=-1) if ord == 2 else s.min(axis=-1)
    return np.expand_dims(found, tuple(sorted(place % x.ndim for place in axes))) if keepdims else found


def tensorinv(a: Any, ind: int = 2) -> Any:
    """Return the inverse of ``a`` for products over ``ind`` axes.

    Raises:
        LinAlgError: ``a`` is singular, or not square.
        ValueError: ``ind`` is not positive.
    """
    if ind <= 0:
        raise ValueError("Invalid ind argument")
    rows = math.prod(a.shape[ind:])
    return inv(a.reshape(rows, -1)).reshape(*a.shape[ind:], *a.shape[:ind])


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Return ``x`` so that the product of ``a`` and ``x`` over all axes of ``x`` is ``b``.

    Raises:
        LinAlgError: ``a`` is singular, or not square.
    """
    if axes is not None:
        last = list(axes)
        a = a.transpose([axis for axis in range(a.ndim) if axis not in last] + last)
    shape = a.shape[-(a.ndim - b.ndim) :]
    return solve(a.reshape(-1, math.prod(shape)), b.ravel()).reshape(shape)


def matrix_power(a: Any, n: int) -> Any:
    """Return the ``n``-th power of each matrix.

    Raises:
        LinAlgError: ``n`` is negative, and a matrix is singular.
    """
    return np.linalg.matrix_power(inv(a), -n) if n < 0 else np.linalg.matrix_power(a, n)


def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803  # NumPy's name
    """Return the eigenvalues and the eigenvectors of each matrix, which is symmetric or Hermitian."""
    result = _np.eigh(_at_least_single(a), UPLO)
    return type(result)(*[part.astype(a.dtype) for part in result]) if a.dtype == np.float16 else result


def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803  # NumPy's name
    """Return the eigenvalues of each matrix, which is symmetric or Hermitian."""
    values = _np.eigvalsh(_at_least_single(a), UPLO)
    return values.astype(a.dtype) if a.dtype == np.float16 else values


def _at_least_single(a: Any) -> Any:
    """Return ``a`` in single precision if it has half precision, which CuPy takes and NumPy refuses."""
    return a.astype(np.float32) if a.dtype == np.float16 else a


def _common(*arrays: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the dtype in which matrices are solved: that of the arrays, and double precision for integers.

    Raises:
        TypeError: An array has a dtype that LAPACK does not have.
    """
    kinds = [
        np.dtype(float) if array.dtype.kind in "biu" or is_bfloat16(array.dtype) else array.dtype for array in arrays
    ]
    kind = np.result_type(*kinds)
    for each in kinds:
        if each.char not in "fdFD":
            raise TypeError(f"{each} is unsupported in linalg")
    return kind


def _require_matrices(a: npt.NDArray[Any]) -> None:
    if a.ndim < 2:
        raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")


def _require_square(a: npt.NDArray[Any]) -> None:
    _require_matrices(a)
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")


def _transposed(a: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.swapaxes(a, -1, -2)


def _stack(a: npt.NDArray[Any], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the matrices of ``a`` along one axis."""
    return a.astype(kind).reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


def _require_regular(status: npt.NDArray[Any], kind: np.dtype[Any], axes: int) -> None:
    """Refuse the status of an elimination if a matrix is singular.

    Raises:
        LinAlgError: A matrix is singular, and errors are not ignored.
    """
    if _state.checks and status.any():
        letter = _LETTERS[kind.char]
        if axes > 2:
            raise LinAlgError(
                f"Error reported by {letter}getrfBatched in cuBLAS. infoArray/devInfoArray = {status}. Please refer to "
                "the cuBLAS documentation."
            )
        _fail(f"{letter}getrf", status)


def _fail(routine: str, status: Any) -> NoReturn:
    raise LinAlgError(
        f"Error reported by {routine} in cuSOLVER. devInfo = {status}. Please refer to the cuSOLVER documentation."
    )


def _failing(routine: str) -> np.errstate:
    """Return a scope in which the loops raise a LinAlgError where LAPACK fails, unless errors are ignored."""
    if not _state.checks:
        return np.errstate(all="ignore")

    def fail(error: str, flag: int) -> NoReturn:
        _fail(routine, "greater than 0")

    return np.errstate(call=fail, invalid="call", over="ignore", divide="ignore", under="ignore")
