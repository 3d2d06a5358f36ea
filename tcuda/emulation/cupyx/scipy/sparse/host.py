"""Functions of SciPy's sparse matrices on the host, with the formats and the dtypes that CuPy's functions give."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cupyx.scipy.sparse.calls import MANY, Plain
from tcuda.emulation.cupyx.scipy.sparse.layout import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def method(name: str) -> Callable[..., Any]:
    """Return a function that calls the method ``name`` of its first argument."""

    def work(matrix: Any, *args: Any, **options: Any) -> Any:
        return getattr(matrix, name)(*args, **options)

    work.__name__ = name
    return work


def changed(name: str) -> Callable[..., Any]:
    """Return a function that returns a copy of its first argument after a call of the method ``name``."""

    def work(matrix: Any, *args: Any, **options: Any) -> Any:
        copy = matrix.copy()
        getattr(copy, name)(*args, **options)
        return copy

    work.__name__ = name.strip("_")
    return work


def by_rows(name: str) -> Callable[..., Any]:
    """Return a function that calls the method ``name`` of a matrix of rows; a sparse result is one, too."""

    def work(matrix: Any, other: Any, *args: Any) -> Any:
        rows, others = matrix.tocsr(), other.tocsr() if is_sparse(other) else other
        if name in ("maximum", "minimum"):
            rows, others = _broadcast(rows, others)
        result = getattr(rows, name)(others, *args)
        return result.tocsr() if is_sparse(result) else result

    work.__name__ = name.strip("_")
    return work


def _broadcast(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two matrices with the same shape, for which a row or a column of one of them is repeated."""
    if not is_sparse(b) or a.ndim != 2 or b.ndim != 2:
        return a, b
    for axis in (0, 1):
        lengths = a.shape[axis], b.shape[axis]
        if lengths[0] != lengths[1] and 1 in lengths:
            places = np.zeros(max(lengths) if min(lengths) else 0, int)
            a, b = (m[(slice(None),) * axis + (places,)] if m.shape[axis] == 1 else m for m in (a, b))
    return a, b


def columns_of_diagonals(matrix: Any) -> Any:
    """Return ``matrix``, which has diagonals, by columns; SciPy's ``tocsc`` needs memory for each row, too."""
    rows, columns = matrix.shape
    data = matrix.data[:, :columns]
    column = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    row = column - matrix.offsets[:, None]
    stored = (row >= 0) & (row < rows) & (data != 0)
    kind = HOST.coo_array if isinstance(matrix, HOST.sparray) else HOST.coo_matrix
    return kind((data[stored], (row[stored], column[stored])), shape=matrix.shape).tocsc()


def is_sparse(value: Any) -> bool:
    """Return whether ``value`` is a matrix of SciPy."""
    return hasattr(value, "tocsr")


def added(a: Any, b: Any, sign: int) -> Any:
    """Return ``a + sign * b`` in the format of ``a``."""
    if a.ndim != b.ndim:  # an array with one axis is a row
        a, b = (part if part.ndim == 2 else part.reshape((1, -1)) for part in (a, b))
    other = b.asformat(a.format)
    return a + other if sign > 0 else a - other


def product(a: Any, b: Any) -> Any:
    """Return ``a @ b`` for matrices, by rows."""
    rows, others = a.tocsr(), b.tocsr()
    if rows.ndim == others.ndim == 2 and others.shape[1] > MANY:
        narrow, used = _narrow(others, others.indices)
        result = rows @ narrow
        return _with_indices(result, used[result.indices], (rows.shape[0], others.shape[1]))
    result = rows @ others
    return result.tocsr() if is_sparse(result) and result.ndim == 2 else result


def _narrow(matrix: Any, wanted: Any) -> tuple[Any, Any]:
    """Return a compressed matrix without the rows or columns that neither ``matrix`` nor ``wanted`` names.

    SciPy needs memory for each place along the axis of the indices, and CuPy for each stored element only.

    Args:
        matrix: The matrix, by rows or by columns.
        wanted: An array of indices.

    Returns:
        The matrix, and the old index of each of its rows or columns.
    """
    used = np.unique(np.concatenate((matrix.indices, wanted.ravel())))
    major = len(matrix.indptr) - 1
    shape = (major, len(used)) if matrix.format == "csr" else (len(used), major)
    return _with_indices(matrix, np.searchsorted(used, matrix.indices), shape), used


def _with_indices(matrix: Any, indices: Any, shape: tuple[int, ...]) -> Any:
    return type(matrix)((matrix.data, indices, matrix.indptr), shape=shape)


def dense_product(a: Any, b: Any) -> Any:
    """Return ``a @ b`` for a matrix and an array."""
    kind = np.result_type(a.dtype, b.dtype)
    if kind.char not in "fdFD":
        kind = np.dtype(np.float64)
    result = a.astype(kind, copy=False) @ b.astype(kind, copy=False)
    return np.asfortranarray(result)


def compared(a: Any, b: Any, name: str) -> Any:
    """Compare matrices by rows, or a matrix with a number."""
    rows, others = _broadcast(a.tocsr(), b.tocsr() if is_sparse(b) else b)
    if is_sparse(others) and rows.shape != others.shape:  # SciPy gives one bool for "==" and "!="
        raise ValueError(f"inconsistent shape: {rows.shape} and {others.shape}")
    result = getattr(operator, name)(rows, others)
    return result.tocsr() if is_sparse(result) else result


def sum_of_coordinates(matrix: Any) -> Any:
    """Return ``matrix``, which has coordinates, with one element for each place, sorted by row and then by column."""
    coords = matrix.coords
    order = np.lexsort(coords[::-1])
    sorted_coords = [part[order] for part in coords]
    data = matrix.data[order]
    if data.size:
        first = np.concatenate([[True], np.any([part[1:] != part[:-1] for part in sorted_coords], axis=0)])
        (starts,) = np.nonzero(first)
        data = (np.logical_or if data.dtype == bool else np.add).reduceat(data, starts).astype(data.dtype)
        sorted_coords = [part[starts] for part in sorted_coords]
    made = type(matrix)((data, tuple(sorted_coords)), shape=matrix.shape)
    made.data, made.coords = data, tuple(sorted_coords)
    made.has_canonical_format = True
    return made


def is_canonical(matrix: Any) -> Plain:
    """Return whether no element of ``matrix`` is stored twice and all indices are sorted."""
    matrix = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return Plain(bool(matrix.has_canonical_format))


def is_sorted(matrix: Any) -> Plain:
    """Return whether all indices of ``matrix`` are sorted."""
    matrix = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return Plain(bool(matrix.has_sorted_indices))


def stored(matrix: Any) -> Plain:
    """Return the number of the stored elements of ``matrix``."""
    return Plain(int(matrix.nnz))


def extreme(matrix: Any, name: str, axis: Any, explicit: bool) -> Any:
    """Return the least or the largest elements of ``matrix``."""
    if axis is not None and axis < 0:
        axis += matrix.ndim
    result = getattr(matrix, name)(axis=axis, explicit=explicit)
    if is_sparse(result):
        result.eliminate_zeros()
    return result


def place(matrix: Any, name: str, axis: Any) -> Any:
    """Return the places of the least or the largest elements of ``matrix``."""
    return getattr(matrix, name)(axis=axis)


def selected(matrix: Any, key: Any) -> Any:
    """Return ``matrix[key]``."""
    minor = {"csr": 1, "csc": 0}.get(matrix.format)
    if minor is not None and matrix.ndim == 2 and matrix.shape[minor] > MANY:
        items = list(key) if isinstance(key, tuple) else [key]
        if names_indices(items, minor):
            narrow, used = _narrow(matrix, items[minor])
            items[minor] = np.searchsorted(used, items[minor])
            chosen = narrow[tuple(items)]
            if is_sparse(chosen) and chosen.format in ("csr", "csc"):
                chosen.sort_indices()
            return chosen
    return matrix[key]


def names_indices(items: Sequence[Any], axis: int) -> bool:
    """Return whether ``items``, an index, has an array of indices at ``axis``, and nothing that adds or skips axes."""
    if any(item is None or item is Ellipsis for item in items) or len(items) <= axis:
        return False
    dtype = getattr(items[axis], "dtype", None)
    return dtype is not None and dtype.kind in "iu" and items[axis].ndim > 0


def assigned(matrix: Any, key: Any, value: Any) -> Any:
    """Return ``matrix`` with ``value`` at ``key``."""
    copy = matrix.copy()
    copy[key] = value
    return copy


def total(matrix: Any, name: str, axis: Any, dtype: Any) -> Any:
    """Return the sum or the mean of ``matrix``."""
    return getattr(matrix, name)(axis=axis, dtype=dtype)
