"""Solvers of linear systems and of eigenvalue problems, by SciPy."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.cupyx.scipy.sparse.base import SparseEfficiencyWarning, _spbase
from tcuda.emulation.cupyx.scipy.sparse.calls import Plain, call
from tcuda.emulation.cupyx.scipy.sparse.compressed import csr_matrix
from tcuda.emulation.cupyx.scipy.sparse.construct import eye_array
from tcuda.emulation.cupyx.scipy.sparse.linalg.operator import LinearOperator, aslinearoperator
from tcuda.emulation.cupyx.scipy.sparse.parts import is_dense
from tcuda.emulation.cupyx.scipy.sparse.powers import power_of
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

_HOST = scipy_module("sparse.linalg")
_FLOATING = "fdFD"


class _OnDevice:
    """An operator whose products are computed on the device, for a function of SciPy.

    Args:
        operator: The operator.
    """

    def __init__(self, operator: LinearOperator) -> None:
        self._operator = operator

    def on_host(self) -> Any:
        """Return SciPy's operator, each product of which waits for the device."""
        operator: Any = self._operator
        products = {name: _downloaded(getattr(operator, name)) for name in ("matvec", "rmatvec", "matmat", "rmatmat")}
        return _HOST.LinearOperator(operator.shape, dtype=operator.dtype, **products)


def _downloaded(product: Callable[[Any], Any]) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    # SciPy passes memory of the device too, from which no copy from the host begins.
    return lambda x: product(creation.array(np.array(x))).get()


def _operand(operator: Any) -> Any:
    """Return an operator for :func:`_solved`: a matrix or an array as it is."""
    return (
        operator
        if operator is None or isinstance(operator, (_spbase, Strided))
        else _OnDevice(aslinearoperator(operator))
    )


def _solved(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``function`` of SciPy with operators."""

    def work(*given: Any, **options: Any) -> Any:
        named = {name: _on_host(value) for name, value in options.items()}
        return function(*map(_on_host, given), **named)

    work.__name__ = function.__name__
    return call(work, args, kwargs)


def _on_host(value: Any) -> Any:
    return value.on_host() if isinstance(value, _OnDevice) else value


def _told(callback: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """Return a function that calls ``callback`` with an array of the device."""
    return None if callback is None else lambda x: callback(creation.array(np.array(x)))


# Systems of equations, step by step


def _iterative(name: str) -> Callable[..., Any]:
    solver = getattr(_HOST, name)

    def solve(
        A: Any,  # noqa: N803
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        M: Any = None,  # noqa: N803
        callback: Callable[[Any], Any] | None = None,
    ) -> tuple[Any, int]:
        return _system(solver, A, b, x0, M, rtol=rtol, atol=atol, maxiter=maxiter, callback=_told(callback))

    solve.__name__ = solve.__qualname__ = name
    solve.__module__ = "tcuda.emulation.cupyx.scipy.sparse.linalg"
    solve.__doc__ = f"""Solve ``A x = b`` as :func:`scipy.sparse.linalg.{name}`, and return the solution and a status.

    Args:
        A: A matrix, an array, or an operator.
        b: The right-hand side.
        x0: The first guess; zeros if None.
        rtol: The tolerance, relative to the norm of ``b``.
        atol: The absolute tolerance.
        maxiter: The most steps.
        M: An operator that is nearly the inverse of ``A``.
        callback: Called with the solution after each step.

    Raises:
        TypeError: The elements of ``A`` are no floating-point numbers.
        ValueError: The shapes do not fit.
    """
    return solve


bicgstab, cg, cgs = map(_iterative, ("bicgstab", "cg", "cgs"))


def gmres(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
    callback: Callable[[Any], Any] | None = None,
    callback_type: str | None = None,
) -> tuple[Any, int]:
    """Solve ``A x = b`` with the generalized minimal residuals; see :func:`cg`.

    Args:
        A: A matrix, an array, or an operator.
        b: The right-hand side.
        x0: The first guess; zeros if None.
        rtol: The tolerance, relative to the norm of ``b``.
        atol: The absolute tolerance.
        restart: The number of steps between restarts.
        maxiter: The most steps.
        M: An operator that is nearly the inverse of ``A``.
        callback: Called with the solution or with the norm of the residual.
        callback_type: ``"x"`` or ``"pr_norm"``, which is the default.

    Raises:
        ValueError: ``callback_type`` is another text, or the shapes do not fit.
    """
    if callback_type not in (None, "x", "pr_norm"):
        raise ValueError(f"Unknown callback_type: {callback_type}")
    size = A.shape[0]
    inner = min(20 if restart is None else restart, size)
    outer = -(-(size * 10 if maxiter is None else maxiter) // max(inner, 1))
    settings = {"restart": inner, "maxiter": outer, "callback_type": callback_type or "pr_norm"}
    return _system(_HOST.gmres, A, b, x0, M, rtol=rtol, atol=atol, callback=_told(callback), **settings)


def minres(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    shift: float = 0.0,
    tol: float = 1e-5,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
    callback: Callable[[Any], Any] | None = None,
    check: bool = False,
) -> tuple[Any, int]:
    """Solve ``(A - shift I) x = b`` for a symmetric matrix; see :func:`cg`.

    Args:
        A: A symmetric matrix, array, or operator.
        b: The right-hand side.
        x0: The first guess; zeros if None.
        shift: The number that is subtracted from the diagonal.
        tol: The tolerance.
        maxiter: The most steps.
        M: An operator that is nearly the inverse of ``A``.
        callback: Called with the solution after each step.
        check: Whether to check that ``A`` and ``M`` are symmetric.

    Raises:
        ValueError: ``A`` or ``M`` is not symmetric, and ``check`` is true.
    """
    options = {"shift": shift, "rtol": tol, "maxiter": maxiter, "callback": _told(callback), "check": check}
    x, status = _system(_HOST.minres, A, b, x0, M, **options)
    return _in_double(x), status


def _in_double(x: Any) -> Any:
    """Return ``x`` with double precision, which some of SciPy's functions and of CuPy's always give."""
    return x.astype(np.promote_types(x.dtype, np.float64), copy=False)


def _system(solver: Callable[..., Any], A: Any, b: Any, x0: Any, M: Any, **options: Any) -> tuple[Any, int]:  # noqa: N803
    if not isinstance(A, (_spbase, Strided)):
        A = aslinearoperator(A)  # noqa: N806
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"expected square matrix (shape: {A.shape})")
    if A.dtype.char not in _FLOATING:
        raise TypeError(f"unsupprted dtype (actual: {A.dtype})")
    size = A.shape[0]
    for name, array in (("b", b), ("x0", x0)):
        if array is not None and array.shape not in ((size,), (size, 1)):
            raise ValueError(f"{name} has incompatible dimensions")
    if M is not None and M.shape != A.shape:
        raise ValueError("matrix and preconditioner have different shapes")
    right = b.astype(A.dtype).ravel()
    if not size:
        return right, 0
    start = None if x0 is None else x0.astype(A.dtype).ravel()
    kind = A.dtype

    def work(a: Any, right: Any, start: Any, near: Any, **settings: Any) -> Any:
        solution, status = solver(_on_host(a), right, start, M=_on_host(near), **settings)
        return np.asarray(solution, kind), Plain(int(status))

    work.__name__ = solver.__name__
    made: tuple[Any, int] = call(work, (_operand(A), right, start, _operand(M)), options)
    return made


# Systems of equations, at once


def _require_system(A: Any, b: Any) -> None:  # noqa: N803
    if not isinstance(A, _spbase):
        raise TypeError("A must be cupyx.scipy.sparse.spmatrix")
    if not is_dense(b):
        raise TypeError("b must be cupy.ndarray")
    if A.shape[0] != A.shape[-1]:
        raise ValueError(f"A must be a square matrix (A.shape: {A.shape})")
    if b.ndim not in (1, 2):
        raise ValueError(f"b must be 1D or 2D array (b.shape: {b.shape})")
    if A.shape[0] != b.shape[0]:
        raise ValueError(f"matrix dimension mismatch (A.shape: {A.shape}, b.shape: {b.shape})")


def spsolve(A: Any, b: Any) -> Any:  # noqa: N803
    """Solve ``A x = b``.

    Args:
        A: A square matrix.
        b: The right-hand side, an array of one or two axes.

    Raises:
        TypeError: ``A`` is no matrix, or ``b`` is no array of the device.
        ValueError: The shapes do not fit.
    """
    _require_system(A, b)
    if A.format != "csr":
        warnings.warn("CSR format is required. Converting to CSR format.", SparseEfficiencyWarning, stacklevel=2)
    _require_short_indices(A, "spsolve")
    A._settle()
    return call(_directly, (A, b.astype(A.dtype, copy=False)), name="spsolve")


def _require_short_indices(matrix: Any, name: str) -> None:
    if any(part.dtype == np.int64 for part in matrix._arrays()[1:]):
        raise ValueError(f"{name} does not support int64 indices; cast the indices to int32")


def _directly(a: Any, b: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = _HOST.spsolve(a.tocsc(), b)
    return np.asarray(x, dtype=b.dtype, order="F").reshape(b.shape, order="F")


def lsqr(A: Any, b: Any) -> tuple[Any, ...]:  # noqa: N803
    """Solve ``A x = b`` for a square matrix, and return ``x`` and nine times None, as CuPy does.

    Raises:
        LinAlgError: ``A`` is not square.
        TypeError: ``b`` is no array of the device.
        ValueError: ``b`` does not have as many elements as ``A`` has rows.
    """
    matrix = A if isinstance(A, _spbase) and A.format == "csr" else csr_matrix(A)
    if matrix.shape[0] != matrix.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if not is_dense(b):
        raise np.linalg.LinAlgError("cupy.linalg only supports cupy.ndarray")
    _require_short_indices(matrix, "lsqr")
    if b.ndim != 1 or len(b) != matrix.shape[0]:
        raise ValueError("b must be 1-d array whose size is same as A")
    kind = np.promote_types(matrix.dtype, "f")
    solution = call(_directly, (matrix.astype(kind), b.astype(kind)), name="lsqr").astype(np.float64)
    return (solution, *[None] * 9)


def lsmr(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
) -> tuple[Any, ...]:
    """Return the solution of a least-squares problem and facts about it, as :func:`scipy.sparse.linalg.lsmr`.

    Args:
        A: A matrix, an array, or an operator.
        b: The right-hand side.
        x0: The first guess; zeros if None.
        damp: The factor of the norm of the solution.
        atol: A tolerance.
        btol: A tolerance.
        conlim: The largest condition number.
        maxiter: The most steps.

    Raises:
        ValueError: ``x0`` has another number of elements than ``A`` has columns.
    """
    operator = A if isinstance(A, (_spbase, Strided)) else aslinearoperator(A)
    if len(operator.shape) != 2:
        raise ValueError(f"A must have two axes (A.shape: {operator.shape})")
    rows, columns = operator.shape
    if b.shape not in ((rows,), (rows, 1)):
        raise ValueError(f"b has incompatible dimensions: the shape is {b.shape}, and A has {rows} rows")
    if x0 is not None and x0.shape not in ((columns,), (columns, 1)):
        raise ValueError("x0 has incompatible dimensions")
    start = None if x0 is None else x0.astype(operator.dtype).ravel()

    def work(a: Any, right: Any, start: Any) -> Any:
        found = _HOST.lsmr(
            _on_host(a), right, damp=damp, atol=atol, btol=btol, conlim=conlim, maxiter=maxiter, x0=start
        )
        return (found[0], *(Plain(fact.item() if hasattr(fact, "item") else fact) for fact in found[1:]))

    solution, *facts = call(work, (_operand(operator), b.ravel(), start), name="lsmr")
    return (_in_double(solution), *facts)


def spsolve_triangular(
    A: Any,  # noqa: N803
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,  # noqa: N803
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solve ``A x = b`` for a triangle of a matrix.

    Args:
        A: A square matrix.
        b: The right-hand side, an array of one or two axes.
        lower: Whether to use the lower triangle, and not the upper one.
        overwrite_A: Ignored.
        overwrite_b: Ignored.
        unit_diagonal: Whether the diagonal has ones, whatever ``A`` has there.

    Raises:
        TypeError: ``A`` is no matrix of floating-point numbers, or ``b`` is no array of the device.
        ValueError: The shapes do not fit.
    """
    _require_system(A, b)
    if A.dtype.char not in _FLOATING:
        raise TypeError(f"unsupported dtype (actual: {A.dtype})")
    if A.format == "dia":
        warnings.warn(
            "CSR, CSC or COO format is required. Converting to CSR format.", SparseEfficiencyWarning, stacklevel=2
        )
    rows = A.tocsr()
    rows._settle()
    x = call(_triangle, (rows, b.astype(A.dtype), lower, unit_diagonal), name="spsolve_triangular")
    return _in_double(x)


def _triangle(a: Any, b: Any, lower: bool, unit: bool) -> Any:
    host = scipy_module("sparse")
    part = (host.tril if lower else host.triu)(a, format="csr")
    return np.asarray(_HOST.spsolve_triangular(part, b, lower=lower, unit_diagonal=unit), dtype=b.dtype)


# Eigenvalues and singular values


def _require_spectrum(k: int, most: int, name: str, dtype: Any) -> None:
    if dtype.char not in _FLOATING:
        raise TypeError(f"unsupprted dtype (actual: {dtype})")
    if k <= 0:
        raise ValueError(f"k must be greater than 0 (actual: {k})")
    if k >= most:
        raise ValueError(f"k must be smaller than {name} (actual: {k})")


def eigsh(
    a: Any,
    k: int = 6,
    *,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
) -> Any:
    """Return ``k`` eigenvalues, and their eigenvectors, of a symmetric matrix.

    Args:
        a: A symmetric matrix, array, or operator.
        k: The number of eigenvalues.
        which: ``"LM"``, ``"LA"`` or ``"SA"``: the largest by magnitude, the largest, or the least eigenvalues.
        v0: The vector to begin with.
        ncv: The number of vectors that are kept.
        maxiter: The most steps.
        tol: The tolerance.
        return_eigenvectors: Whether to return eigenvectors too.

    Raises:
        TypeError: The elements are no floating-point numbers.
        ValueError: There are no such eigenvalues.
    """
    if len(a.shape) != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"expected square matrix (shape: {a.shape})")
    _require_spectrum(k, a.shape[0], "n", a.dtype)
    if which not in ("LM", "LA", "SA"):
        raise ValueError(f"which must be 'LM','LA'or'SA' (actual: {which})")
    size = a.shape[0]
    kept = min(max(2 * k, k + 32) if ncv is None else max(ncv, k + 2), size)
    options = {"which": which, "v0": v0, "ncv": kept, "maxiter": maxiter, "tol": tol}
    return _solved(_eigenvalues, _operand(a), k, vectors=return_eigenvectors, **options)


def _eigenvalues(a: Any, k: int, vectors: bool, maxiter: int | None, **options: Any) -> Any:
    try:
        values, columns = _HOST.eigsh(a, k, maxiter=maxiter if maxiter is None else max(maxiter, 1), **options)
    except _HOST.ArpackNoConvergence:
        values, columns = _approximate(a, k, **options)
    order = np.argsort(values)
    return (values[order], columns[:, order]) if vectors else values[order]


def _approximate(a: Any, k: int, which: str, v0: Any, ncv: int, tol: float) -> tuple[Any, Any]:
    """Return the eigenvalues of ``a`` in a space of ``ncv`` vectors, where more steps are not allowed, as CuPy does."""
    start = np.random.default_rng().random(a.shape[0]) if v0 is None else v0
    vectors = [start.astype(a.dtype) / np.linalg.norm(start)]
    while len(vectors) < ncv:
        following = a @ vectors[-1]
        vectors.append(following / np.linalg.norm(following))
    basis = np.linalg.qr(np.stack(vectors, axis=1))[0]
    values, columns = np.linalg.eigh(basis.conj().T @ (a @ basis))
    order = np.argsort({"LM": -np.abs(values), "LA": -values, "SA": values}[which])[:k]
    return values[order], basis @ columns[:, order]


def svds(
    a: Any,
    k: int = 6,
    *,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    maxiter: int | None = None,
    return_singular_vectors: bool = True,
) -> Any:
    """Return the ``k`` largest singular values, and their vectors.

    Args:
        a: A matrix, an array, or an operator.
        k: The number of singular values.
        ncv: The number of vectors that are kept.
        tol: The tolerance.
        which: ``"LM"``.
        maxiter: The most steps.
        return_singular_vectors: Whether to return the vectors too.

    Raises:
        TypeError: The elements are no floating-point numbers.
        ValueError: There are no such singular values.
    """
    if len(a.shape) != 2:
        raise ValueError(f"expected 2D (shape: {a.shape})")
    _require_spectrum(k, min(a.shape), "min(m, n)", a.dtype)
    kept = None if ncv is None else min(max(ncv, k + 2), min(a.shape))
    options = {"ncv": kept, "tol": tol, "which": which, "maxiter": maxiter}
    return _solved(_HOST.svds, _operand(a), k, return_singular_vectors=return_singular_vectors, **options)


def lobpcg(
    A: Any,  # noqa: N803
    X: Any,  # noqa: N803
    B: Any = None,  # noqa: N803
    M: Any = None,  # noqa: N803
    Y: Any = None,  # noqa: N803
    tol: float | None = None,
    maxiter: int | None = None,
    largest: bool = True,
    verbosityLevel: int = 0,  # noqa: N803
    retLambdaHistory: bool = False,  # noqa: N803
    retResidualNormsHistory: bool = False,  # noqa: N803
) -> Any:
    """Return the largest or the least eigenvalues and their vectors, as :func:`scipy.sparse.linalg.lobpcg`.

    Args:
        A: A symmetric matrix, array, or operator.
        X: The vectors to begin with, in columns.
        B: The operator of the right-hand side; the identity if None.
        M: An operator that is nearly the inverse of ``A``.
        Y: Constraints, in columns.
        tol: The tolerance.
        maxiter: The most steps.
        largest: Whether the largest eigenvalues are found, and not the least ones.
        verbosityLevel: How much is printed.
        retLambdaHistory: Whether the eigenvalues after each step are returned too.
        retResidualNormsHistory: Whether the norms of the residuals after each step are returned too.

    Raises:
        ValueError: The shapes do not fit.
    """
    if X.ndim != 2:
        raise ValueError("expected rank-2 array for argument X")
    size, operators = X.shape[0], [_operand(each) for each in (A, B, M)]
    if any(each is not None and aslinearoperator(each).shape != (size, size) for each in (A, B, M)):
        raise ValueError("operator has invalid shape")
    if Y is not None and size - Y.shape[1] < 5 * X.shape[1]:
        raise NotImplementedError("The dense eigensolver does not support constraints.")
    options = {
        "tol": tol,
        "maxiter": maxiter,
        "largest": largest,
        "verbosityLevel": verbosityLevel,
        "retLambdaHistory": retLambdaHistory,
        "retResidualNormsHistory": retResidualNormsHistory,
    }
    return _solved(_blocks_of_vectors, operators[0], X, *operators[1:], Y, **options)


def _blocks_of_vectors(a: Any, x: Any, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The problem size")  # CuPy does not warn of small problems
        return _HOST.lobpcg(a, x.copy(), *args, **options)


# Norms and powers


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return the norm of a matrix, or of its rows or columns.

    Args:
        x: The matrix.
        ord: The order of the norm.
        axis: The axis, or the axes.

    Raises:
        NotImplementedError: The norm needs singular values.
        TypeError: ``x`` is no matrix.
        ValueError: There is no such norm or axis.
    """
    if not isinstance(x, _spbase):
        raise TypeError("input is not sparse. use cupy.linalg.norm")
    if ord in (2, -2) and (axis is None or (isinstance(axis, tuple) and len(axis) == 2)):
        raise NotImplementedError("CuPy has no norm of a sparse matrix that needs singular values")
    return call(_HOST.norm, (x, ord, axis))


def matrix_power(A: Any, power: Any) -> Any:  # noqa: N803
    """Return a square matrix to the power ``power``.

    Raises:
        TypeError: The matrix is not square.
        ValueError: The power is no integer, or is negative.
    """
    return power_of(A, power, lambda: eye_array(A.shape[0], dtype=A.dtype))
