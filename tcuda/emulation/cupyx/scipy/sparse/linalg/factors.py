"""Factors of sparse matrices (``SuperLU``), by SciPy."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cupyx.scipy.host_modules import scipy_module
from tcuda.emulation.cupyx.scipy.sparse.base import _spbase
from tcuda.emulation.cupyx.scipy.sparse.calls import call
from tcuda.emulation.cupyx.scipy.sparse.compressed import csr_matrix
from tcuda.emulation.cupyx.scipy.sparse.parts import is_dense
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

_HOST = scipy_module("sparse.linalg")


class SuperLU:
    """The factors of a matrix, on the device.

    Args:
        obj: The factors that SciPy has computed.

    Attributes:
        shape: The shape of the matrix.
        nnz: The number of stored elements of the factors.
        perm_r: The permutation of rows.
        perm_c: The permutation of columns.
        L: The lower factor.
        U: The upper factor.

    Raises:
        TypeError: ``obj`` is something else.
    """

    def __init__(self, obj: Any) -> None:
        if not isinstance(obj, _HOST.SuperLU):
            raise TypeError("obj must be scipy.sparse.linalg.SuperLU")
        self._keep(obj.L, obj.U, obj.nnz, creation.array(obj.perm_r), creation.array(obj.perm_c))

    def _keep(self, lower: Any, upper: Any, nnz: int, perm_r: Any, perm_c: Any) -> None:
        self.shape, self.nnz, self.perm_r, self.perm_c = lower.shape, nnz, perm_r, perm_c
        self.L, self.U = csr_matrix(lower.tocsr()), csr_matrix(upper.tocsr())
        self.L._settle()
        self.U._settle()

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Solve ``A x = rhs``, or the system with the transposed (``"T"``) or adjoint (``"H"``) matrix.

        Raises:
            TypeError: ``rhs`` is no array of the device.
            ValueError: The shapes do not fit, or ``trans`` is another text.
        """
        if not is_dense(rhs):
            raise TypeError("ojb must be cupy.ndarray")
        if rhs.ndim not in (1, 2):
            raise ValueError(f"rhs.ndim must be 1 or 2 (actual: {rhs.ndim})")
        if rhs.shape[0] != self.shape[0]:
            raise ValueError(f"shape mismatch (self.shape: {self.shape}, rhs.shape: {rhs.shape})")
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be 'N', 'T', or 'H'")
        args = (self.L, self.U, self.perm_r, self.perm_c, rhs.astype(self.L.dtype), trans)
        return call(_substituted, args, name="solve")


def _substituted(lower: Any, upper: Any, perm_r: Any, perm_c: Any, x: Any, trans: str) -> Any:
    """Solve a system with two triangles."""
    solve = _HOST.spsolve_triangular
    places, back = (perm_r, perm_c) if trans == "N" else (perm_c, perm_r)
    x = x if places is None else x[np.argsort(places)]
    if trans == "N":
        x = solve(upper, solve(lower, x, lower=True), lower=False)
    else:
        first, second = (part.T.tocsr() for part in (upper, lower))
        if trans == "H":
            first, second = first.conj(), second.conj()
        x = solve(second, solve(first, x, lower=True), lower=False)
    return np.asarray(x if back is None else x[back], dtype=lower.dtype, order="F")


def _factors(name: str, A: Any, **options: Any) -> SuperLU:  # noqa: N803
    _require_square(A)
    return SuperLU(getattr(_HOST, name)(A.get().tocsc(), **options))


def _require_square(A: Any) -> None:  # noqa: N803
    if not isinstance(A, _spbase):
        raise TypeError("A must be cupyx.scipy.sparse.spmatrix")
    if A.shape[0] != A.shape[-1]:
        raise ValueError(f"A must be a square matrix (A.shape: {A.shape})")
    if A.dtype.char not in "fdFD":
        raise TypeError(f"Invalid dtype (actual: {A.dtype})")


def splu(
    A: Any,  # noqa: N803
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Any = {},  # noqa: B006  # CuPy's default
) -> SuperLU:
    """Return the factors of a matrix. SciPy computes them on the host, as in CuPy; the options are SciPy's.

    Raises:
        TypeError: ``A`` is no matrix of floating-point numbers.
        ValueError: ``A`` is not square.
    """
    settings = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax}
    return _factors("splu", A, **settings, panel_size=panel_size, options=options)


def spilu(
    A: Any,  # noqa: N803
    drop_tol: float | None = None,
    fill_factor: float | None = None,
    drop_rule: str | None = None,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Any = {},  # noqa: B006  # CuPy's default
) -> SuperLU:
    """Return incomplete factors of a matrix; with ``fill_factor=1``, the factors have no other elements than ``A``.

    Raises:
        TypeError: ``A`` is no matrix of floating-point numbers.
        ValueError: ``A`` is not square.
    """
    if fill_factor == 1:
        _require_square(A)
        made = SuperLU.__new__(SuperLU)
        lower, upper = _incomplete(A.get().tocsr())
        made._keep(lower, upper, A.nnz, None, None)
        return made
    settings = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax}
    settings |= {"drop_tol": drop_tol, "fill_factor": fill_factor, "drop_rule": drop_rule}
    return _factors("spilu", A, **settings, panel_size=panel_size, options=options)


def _incomplete(matrix: Any) -> tuple[Any, Any]:
    """Return the factors of ``matrix`` that have elements only where ``matrix`` has some."""
    matrix.sum_duplicates()
    data, indices, ends = matrix.data, matrix.indices, matrix.indptr
    places = [dict(zip(indices[a:b].tolist(), range(a, b), strict=True)) for a, b in itertools.pairwise(ends)]
    for number, row in enumerate(places):
        for column in [each for each in row if each < number]:
            data[row[column]] /= data[places[column][column]]
            for other, place in places[column].items():
                if other > column and other in row:
                    data[row[other]] -= data[row[column]] * data[place]
    host = scipy_module("sparse")
    return host.tril(matrix, -1) + host.identity(matrix.shape[0], matrix.dtype), host.triu(matrix)


def factorized(A: Any) -> Callable[[Any], Any]:  # noqa: N803
    """Return a function that solves systems with the matrix ``A``; see :func:`splu`."""
    return splu(A).solve
