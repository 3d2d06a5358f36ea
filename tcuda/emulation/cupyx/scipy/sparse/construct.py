"""Functions that make sparse matrices: of diagonals, of blocks, of other matrices, and of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tcuda.emulation.random as random_numbers
from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.sparse.base import _spbase
from tcuda.emulation.cupyx.scipy.sparse.calls import CLASSES, call
from tcuda.emulation.cupyx.scipy.sparse.coo import coo_array, coo_matrix
from tcuda.emulation.cupyx.scipy.sparse.dia import dia_matrix
from tcuda.emulation.cupyx.scipy.sparse.kinds import sparray
from tcuda.emulation.cupyx.scipy.sparse.layout import DTYPES, HOST
from tcuda.emulation.cupyx.scipy.sparse.parts import get_index_dtype, is_dense
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation


def _has_array(*blocks: Any) -> bool:
    return any(isinstance(block, sparray) for block in blocks)


def _as_array(matrix: Any, format: str | None) -> Any:
    """Return ``matrix`` as a sparse array, by rows if CuPy cannot make the format."""
    if isinstance(matrix, sparray):
        return matrix
    rows = matrix.tocsr()
    made = CLASSES["csr_array"](rows)
    wanted = format or matrix.format
    return made if wanted == "dia" else made.asformat(wanted)


def _coordinates(block: Any, array: bool) -> Any:
    return (coo_array if array else coo_matrix)(block)


def _block(block: Any, array: bool) -> Any:
    """Return a block with coordinates; a sparse block keeps the type of its indices."""
    if isinstance(block, _spbase) and isinstance(block, sparray) == array:
        return block.tocoo()
    return _coordinates(block, array)


# Diagonals


def eye(m: Any, n: Any = None, k: int = 0, dtype: Any = "d", format: str | None = None) -> Any:
    """Return a matrix with ones on a diagonal.

    Args:
        m: The number of rows.
        n: The number of columns; that of rows if None.
        k: The diagonal.
        dtype: The type of the elements.
        format: The format; CuPy chooses one if None.
    """
    m, n = int(m), int(m if n is None else n)
    if m == n and k == 0 and format in ("csr", "csc", "coo"):
        return call(HOST.eye, (m, n, k, dtype, format), reads=False)
    ones = creation.ones((1, max(0, min(m + k, n))), dtype)
    return spdiags(ones, k, m, n).asformat(format)


def identity(n: Any, dtype: Any = "d", format: str | None = None) -> Any:
    """Return a square matrix with ones on the main diagonal."""
    return eye(n, n, dtype=dtype, format=format)


def eye_array(m: Any, n: Any = None, *, k: int = 0, dtype: Any = float, format: str | None = None) -> Any:
    """Return a sparse array with ones on a diagonal; see :func:`eye`."""
    return _as_array(eye(m, n, k, dtype, format), format)


def spdiags(data: Any, diags: Any, m: int, n: int, format: str | None = None) -> Any:
    """Return a matrix with the diagonals ``diags``, which are the rows of ``data``."""
    return dia_matrix((data, diags), shape=(m, n)).asformat(format)


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None) -> Any:
    """Return a matrix with given diagonals.

    Args:
        diagonals: The diagonals, arrays or sequences.
        offsets: The place of each diagonal.
        shape: The shape; that of the smallest square matrix with the first diagonal if None.
        format: The format; diagonals if None.
        dtype: The type of the elements; that of the diagonals if None.

    Raises:
        ValueError: The numbers of diagonals and of offsets differ, or a diagonal does not fit.
    """
    if np.isscalar(offsets) or (is_dense(offsets) and not offsets.ndim):
        if len(diagonals) and np.ndim(diagonals[0]):
            raise ValueError("Different number of diagonals and offsets.")
        diagonals = [diagonals]
    rows: list[Any] = [FUNCTIONS["atleast_1d"](creation.asarray(row)) for row in diagonals]
    places = np.atleast_1d(offsets.get() if is_dense(offsets) else offsets)
    if len(rows) != len(places):
        raise ValueError("Different number of diagonals and offsets.")
    if shape is None:
        shape = (len(rows[0]) + abs(int(places[0])),) * 2
    kind = np.dtype(dtype) if dtype is not None else np.result_type(*[row.dtype for row in rows])
    if dtype is None and kind.kind not in "fc":
        kind = np.dtype(float)
    m, n = shape
    width = max(0, *(min(m + place, n - place) + max(0, place) for place in places))
    data: Any = creation.zeros((len(places), int(width)), kind)
    for place, (offset, row) in enumerate(zip(places, rows, strict=True)):
        length = int(min(m + offset, n - offset, m, n))
        if length < 0:
            raise ValueError(f"Offset {offset} (index {place}) out of bounds")
        if len(row) < length and len(row) != 1:
            raise ValueError(
                f"Diagonal length (index {place}: {len(row)} at offset {offset}) does not agree with matrix size "
                f"({m}, {n})."
            )
        first = int(max(0, offset))
        data[place, first : first + length] = row[:length]
    return dia_matrix((data, places), shape=(m, n)).asformat(format)


def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None
) -> Any:
    """Return a sparse array with given diagonals; see :func:`diags`."""
    return _as_array(diags(diagonals, offsets, shape, format, dtype), format)


# Blocks


def bmat(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Return a matrix that is made of blocks, of which None is a block of zeros.

    Args:
        blocks: The rows of blocks.
        format: The format; CuPy chooses one if None.
        dtype: The type of the elements; that of the blocks if None.

    Raises:
        ValueError: The blocks do not fit together.
    """
    given = [block for row in blocks for block in row if block is not None]
    if not given:
        return coo_matrix((0, 0), dtype=dtype)
    formats = {block.format if isinstance(block, _spbase) else None for block in given}
    array = _has_array(*given)
    one_column, one_row = all(len(row) == 1 for row in blocks), len(blocks) == 1
    stacked = "csr" if formats == {"csr"} and one_column else "csc" if formats == {"csc"} and one_row else "coo"
    if stacked == "coo" or format not in (None, stacked):
        stacked = "coo"
        blocks = [[None if block is None else _block(block, array) for block in row] for row in blocks]
    return call(_blocks, (blocks, stacked, dtype, array), name="bmat", reads=False).asformat(format)


def _blocks(blocks: Any, format: Any, dtype: Any, array: bool) -> Any:
    kinds = [block.dtype for row in blocks for block in row if block is not None]
    return (HOST.block_array if array else HOST.bmat)(blocks, format=format, dtype=dtype or np.result_type(*kinds))


def _rows(blocks: Any) -> list[Any]:
    return [block.reshape((1, -1)) if isinstance(block, _spbase) and block.ndim == 1 else block for block in blocks]


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Return a matrix of matrices beside each other."""
    return bmat([_rows(blocks)], format, dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Return a matrix of matrices below each other."""
    return bmat([[block] for block in _rows(blocks)], format, dtype)


def block_array(blocks: Any, *, format: str | None = None, dtype: Any = None) -> Any:
    """Return a sparse array that is made of blocks; see :func:`bmat`."""
    return _as_array(bmat(blocks, format, dtype), format)


def block_diag(mats: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Return a matrix with blocks on its main diagonal.

    Args:
        mats: The blocks: matrices, arrays, numbers or sequences.
        format: The format; coordinates if None.
        dtype: The type of the elements; that of the blocks if None.
    """
    array = _has_array(*mats)
    if not mats:
        return coo_matrix((0, 0), dtype=dtype).asformat(format)
    blocks = [block if isinstance(block, _spbase) else _dense_block(block) for block in mats]
    return call(_on_diagonal, (blocks, array, dtype), name="block_diag", reads=False).asformat(format)


def _dense_block(block: Any) -> Any:
    dense = FUNCTIONS["atleast_2d"](creation.asarray(block))
    return dense if dense.dtype.char in DTYPES else dense.astype(float)


def _on_diagonal(blocks: Any, array: bool, dtype: Any) -> Any:
    rows, columns, data, corner = [], [], [], np.zeros(2, int)
    for block in blocks:
        if isinstance(block, np.ndarray):
            places = np.indices(block.shape).reshape(2, -1)
            elements = block.ravel()
        else:
            found = block.tocoo()
            places = np.array(found.coords if found.ndim == 2 else (np.zeros_like(found.coords[0]), *found.coords))
            elements = found.data
        rows.append(places[0] + corner[0])
        columns.append(places[1] + corner[1])
        data.append(elements)
        corner += block.shape if len(block.shape) == 2 else (1, *block.shape)
    kind = HOST.coo_array if array else HOST.coo_matrix
    coords = (np.concatenate(rows), np.concatenate(columns))
    elements = np.concatenate(data)
    made = kind((elements if dtype is None else elements.astype(dtype), coords), tuple(corner.tolist()))
    index = get_index_dtype(maxval=int(max(corner)))
    made.coords = tuple(part.astype(index) for part in coords)
    return made


# Products and parts


def kron(A: Any, B: Any, format: str | None = None) -> Any:  # noqa: N803
    """Return the Kronecker product of two matrices."""
    array = _has_array(A, B)
    A, B = _coordinates(A, array), _coordinates(B, array)  # noqa: N806
    if not A.nnz or not B.nnz:
        return type(A)((A.shape[0] * B.shape[0], A.shape[1] * B.shape[1])).asformat(format)
    return call(_kronecker, (A, B), name="kron", reads=False).asformat(format)


def _kronecker(a: Any, b: Any) -> Any:
    """Return the product with coordinates, whose number follows from the numbers of elements."""
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    kinds = [part.dtype for part in (*a.coords, *b.coords)] if isinstance(a, HOST.sparray) else []
    index = np.result_type(get_index_dtype(maxval=max(shape)), *kinds)
    coords = tuple(
        (outer.astype(index)[:, None] * length + inner).ravel().astype(index, copy=False)
        for outer, inner, length in zip(a.coords, b.coords, b.shape, strict=True)
    )
    made = type(a)(((a.data[:, None] * b.data).ravel(), coords), shape=shape)
    made.coords = coords
    return made


def kronsum(A: Any, B: Any, format: str | None = None) -> Any:  # noqa: N803
    """Return the Kronecker sum of two square matrices.

    Raises:
        ValueError: A matrix is not square.
    """
    array = _has_array(A, B)
    A, B = _coordinates(A, array), _coordinates(B, array)  # noqa: N806
    for name, matrix in (("A", A), ("B", B)):
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"{name} is not square matrix")
    kind = np.result_type(A.dtype, B.dtype)
    left = kron(eye(B.shape[0], dtype=kind), A, format)
    return (left + kron(B, eye(A.shape[0], dtype=kind), format)).asformat(format)


def _require_matrix(A: Any) -> None:  # noqa: N803
    if not isinstance(A, (_spbase, Strided)):
        raise TypeError("A must be cupy.ndarray or cupyx.scipy.sparse")


def find(A: Any) -> tuple[Any, Any, Any]:  # noqa: N803
    """Return the rows, the columns and the values of the elements that are not zero."""
    _require_matrix(A)
    matrix = _coordinates(A, _has_array(A)).copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix.row, matrix.col, matrix.data


def tril(A: Any, k: int = 0, format: str | None = None) -> Any:  # noqa: N803
    """Return the elements on and below a diagonal."""
    return _triangle(A, format, lambda row, col: row + k >= col)


def triu(A: Any, k: int = 0, format: str | None = None) -> Any:  # noqa: N803
    """Return the elements on and above a diagonal."""
    return _triangle(A, format, lambda row, col: row + k <= col)


def _triangle(A: Any, format: str | None, chosen: Any) -> Any:  # noqa: N803
    _require_matrix(A)
    matrix = _coordinates(A, _has_array(A))
    mask = chosen(matrix.row, matrix.col)
    parts = (part[mask] for part in (matrix.data, matrix.row, matrix.col))
    return type(matrix)._from_parts(*parts, matrix.shape).asformat(format)


def matrix_transpose(A: Any) -> Any:  # noqa: N803
    """Return the transposed matrix."""
    return _sparse(A, "matrix_transpose").transpose()


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:  # noqa: N803
    """Return a matrix with two axes swapped."""
    matrix = _sparse(A, "swapaxes")
    if not all(-2 <= axis < 2 for axis in (axis1, axis2)):
        raise ValueError("axis out of range for 2-D sparse object")
    return matrix.copy() if axis1 % 2 == axis2 % 2 else matrix.transpose()


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:  # noqa: N803
    """Return a matrix with its axes in another order."""
    matrix = _sparse(A, "permute_dims")
    order = [axis + 2 if axis < 0 else axis for axis in (axes if axes is not None else (1, 0))]
    if sorted(order) != [0, 1]:
        raise ValueError("axes must be a permutation of (0, 1)")
    if order == [0, 1]:
        return matrix.copy() if copy else matrix
    return matrix.transpose(copy=copy)


def _sparse(value: Any, name: str) -> Any:
    if not isinstance(value, _spbase):
        raise TypeError(f"{name} expected a sparse object")
    return value


# Random numbers


def random(
    m: int,
    n: int,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    random_state: Any = None,
    data_rvs: Any = None,
) -> Any:
    """Return a matrix of random numbers at random places.

    Args:
        m: The number of rows.
        n: The number of columns.
        density: The part of the elements that are stored.
        format: The format.
        dtype: The type of the elements, ``float32`` or ``float64``.
        random_state: A state of random numbers, or a seed; the state of the device if None.
        data_rvs: Called with the number of elements; returns the elements.

    Raises:
        NotImplementedError: ``dtype`` is another type.
        ValueError: ``density`` is not between 0 and 1.
    """
    if not 0 <= density <= 1:
        raise ValueError("density expected to be 0 <= density <= 1")
    kind = np.dtype(dtype)
    if kind.char not in "fd":
        raise NotImplementedError(f"type {kind} not supported")
    state = random_numbers if random_state is None else random_state
    if isinstance(state, (int, np.integer)):
        state = random_numbers.RandomState(state)
    places = state.choice(m * n, size=int(density * m * n), replace=False)
    places = places.astype(get_index_dtype(maxval=m * n - 1), copy=False)
    values = (data_rvs or state.rand)(len(places)).astype(kind)
    column = places // m if m else places
    return coo_matrix((values, (places - column * m, column)), shape=(m, n)).asformat(format)


def rand(
    m: int, n: int, density: float = 0.01, format: str = "coo", dtype: Any = None, random_state: Any = None
) -> Any:
    """Return a matrix of random numbers at random places; see :func:`random`."""
    return random(m, n, density, format, dtype, random_state)


def random_array(
    shape: Any,
    *,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    rng: Any = None,
    data_sampler: Any = None,
) -> Any:
    """Return a sparse array of random numbers at random places; see :func:`random`."""
    if len(shape) == 1:
        row = random(1, shape[0], density, "coo", dtype, rng, data_sampler)
        return coo_array((row.data, (row.col,)), shape=tuple(shape)).asformat(format)
    return _as_array(random(shape[0], shape[1], density, format, dtype, rng, data_sampler), format)
