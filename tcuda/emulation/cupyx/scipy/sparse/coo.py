"""Sparse matrices and arrays that are stored with coordinates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.sparse import host
from tcuda.emulation.cupyx.scipy.sparse.base import _spbase
from tcuda.emulation.cupyx.scipy.sparse.calls import call
from tcuda.emulation.cupyx.scipy.sparse.kinds import sparray, spmatrix
from tcuda.emulation.cupyx.scipy.sparse.layout import HOST, Layout
from tcuda.emulation.cupyx.scipy.sparse.parts import bounds_of, empty, get_index_dtype, is_dense, is_vector, supported
from tcuda.emulation.cupyx.scipy.sparse.shapes import checked_shape, is_shape
from tcuda.emulation.cupyx.scipy.sparse.stored_elements import StoredElements
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from typing_extensions import Self


class _coo_base(StoredElements, _spbase):
    """A matrix that is stored with coordinates.

    Args:
        arg1: A matrix, an array of the device, a matrix of SciPy, a shape, or ``(data, (row, col))``.
        shape: The shape; that of ``arg1`` if None.
        dtype: The type of the elements; that of ``arg1`` if None.
        copy: Whether to copy arrays that the matrix could share.
        maxprint: The most elements that ``str`` shows.

    Raises:
        TypeError: The arguments describe no matrix.
        ValueError: The coordinates lie outside of the matrix, or no matrix has elements of this type.
    """

    format = "coo"
    row: Any
    col: Any
    has_canonical_format = False

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: int | None = None
    ) -> None:
        if maxprint is not None:
            self.maxprint = maxprint
        if shape is not None:
            if len(shape) not in self._allow_nd:
                raise self._refused_axes()
            shape = checked_shape(shape, self._allow_nd)
        data, coords, found, canonical = self._read(arg1, shape, dtype)
        shape = shape or found
        kind = supported(data.dtype if dtype is None else dtype)
        shared = isinstance(arg1, (tuple, _coo_base))
        data = data.astype(kind, copy=copy and shared)
        row: Any
        col: Any
        row, col = coords if len(coords) == 2 else (FUNCTIONS["zeros_like"](coords[0]), coords[0])
        index = get_index_dtype((row, col), None if shape is None else max(shape), not isinstance(self, sparray))
        row, col = (part.astype(index, copy=copy and shared) for part in (row, col))
        if shape is None and not len(col):
            raise ValueError("cannot infer dimensions from zero sized index arrays")
        if len(data):
            shape = _within(row, col, shape, len(coords))
        self._set(Layout(self._name(), tuple(shape), canonical), (data, row, col))

    def _read(self, arg1: Any, shape: Any, dtype: Any) -> tuple[Any, tuple[Any, ...], Any, bool]:
        """Return the elements, their coordinates, the shape, and whether the elements are sorted and summed."""
        if isinstance(arg1, _spbase):
            _require_axes(shape, arg1.ndim)
            other = arg1.tocoo()
            return other.data, other.coords, other.shape, other.has_canonical_format
        if is_shape(arg1, self._allow_nd):
            lengths = checked_shape(arg1, self._allow_nd)
            places = empty(0, get_index_dtype(maxval=max(lengths)))
            return empty(0, dtype or "d"), (places,) * len(lengths), lengths, True
        if HOST.issparse(arg1):
            _require_axes(shape, arg1.ndim)
            other = arg1.tocoo()
            supported(other.data.dtype if dtype is None else dtype)
            coords = tuple(creation.array(part) for part in other.coords)
            return creation.array(other.data), coords, other.shape, bool(other.has_canonical_format)
        if isinstance(arg1, tuple) and len(arg1) == 2:
            data, given = arg1
            if (is_dense(given) and given.ndim != 2) or not hasattr(given, "__iter__"):
                raise TypeError("invalid input format")
            coords = tuple(given)
            if len(coords) not in (1, 2) or (len(coords) == 1 and 1 not in self._allow_nd):
                raise ValueError("invalid number of coordinate arrays")
            if not all(map(is_vector, (data, *coords))):
                raise ValueError("row, column, and data arrays must be 1-D")
            if any(part.size != data.size for part in coords):
                raise ValueError("row, column, and data array must all be the same length")
            if shape is not None and len(shape) != len(coords):
                raise ValueError(
                    f"mismatching number of index arrays for shape; got {len(coords)}, expected {len(shape)}"
                )
            return data, coords, None, False
        if is_dense(arg1):
            return self._read_dense(arg1, shape, dtype)
        if isinstance(self, sparray) and isinstance(arg1, tuple) and arg1 and is_shape(arg1, (len(arg1),)):
            raise self._refused_axes()
        raise TypeError("invalid input format")

    def _read_dense(self, array: Any, shape: Any, dtype: Any) -> tuple[Any, tuple[Any, ...], Any, bool]:
        if array.ndim > 2:
            raise TypeError("expected dimension <= 2 array or matrix")
        if array.ndim == 0 and isinstance(self, sparray):
            raise TypeError(f"{type(self).__name__} does not support scalar (0-D) input; provide a 1-D or 2-D array")
        if array.ndim:
            _require_axes(shape, array.ndim)
        if array.ndim < 2 and (1 not in self._allow_nd or not array.ndim):
            array = FUNCTIONS["atleast_2d"](array)
        coords = FUNCTIONS["nonzero"](array)
        return array[coords], coords, array.shape, True

    def _refused_axes(self) -> ValueError:
        return ValueError(
            "Only 1-D and 2-D sparse arrays are supported."
            if 1 in self._allow_nd
            else "Only two-dimensional sparse arrays are supported."
        )

    @classmethod
    def _from_parts(cls, data: Any, row: Any, col: Any, shape: Any, has_canonical_format: bool = False) -> Self:
        lengths = checked_shape(shape, cls._allow_nd)
        if not all(part.ndim == 1 for part in (data, row, col)):
            raise ValueError("data, row, and col must be 1-D")
        if row.dtype != col.dtype:
            raise ValueError(f"row and col must have the same dtype, got {row.dtype} and {col.dtype}")
        if not data.size == row.size == col.size:
            raise ValueError(
                f"data, row, and col must have the same length, got {data.size}, {row.size}, and {col.size}"
            )
        if max(lengths) > np.iinfo(row.dtype).max:
            raise ValueError(f"shape {lengths} too large for index dtype {row.dtype}")
        return cls._of_layout(Layout(cls._name(), lengths, has_canonical_format), data, row, col)

    @property
    def _layout(self) -> Layout:
        return Layout(self._name(), self._shape, bool(self.has_canonical_format))

    def _set(self, layout: Layout, arrays: Any) -> None:
        super()._set(layout, arrays)
        self.has_canonical_format = bool(layout.canonical)

    @property
    def coords(self) -> tuple[Any, ...]:
        """The arrays of coordinates, one for each axis."""
        return (self.col,) if self.ndim == 1 else (self.row, self.col)

    @coords.setter
    def coords(self, value: Any) -> None:
        if not isinstance(value, tuple) or len(value) != self.ndim:
            raise ValueError(f"coords must be a {self.ndim}-tuple of arrays")
        self.row, self.col = value if self.ndim == 2 else (FUNCTIONS["zeros_like"](value[0]), value[0])

    def tocsr(self, copy: bool = False) -> Any:
        """Return the matrix by rows."""
        return self._converted("csr", copy, True)

    def tocsc(self, copy: bool = False) -> Any:
        """Return the matrix by columns."""
        if self.ndim == 1:
            raise ValueError("Cannot convert a 1-D sparse array to csc format")
        return self._converted("csc", copy, True)

    def sum_duplicates(self) -> None:
        """Sum elements that are stored twice, and sort them by row and column, in place."""
        if not self.has_canonical_format:
            self._adopt(call(host.sum_of_coordinates, (self,), name="sum_duplicates"))

    def diagonal(self, k: int = 0) -> Any:
        """Return a diagonal."""
        self._require_2d("diagonal")
        rows, columns = self.shape
        if k <= -rows or k >= columns:
            return creation.empty(0, self.dtype)
        return call(host.method("diagonal"), (self, k))

    def count_nonzero(self, axis: Any = None) -> Any:
        """Return the number of elements that are not zero."""
        self.sum_duplicates()
        return super().count_nonzero(axis)

    def dot(self, other: Any) -> Any:
        """Return the product with a matrix, an array or a number."""
        if np.isscalar(other) or (is_dense(other) and not other.ndim):
            return self._with_data(self.data * other)
        return self @ other

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(self, sparray):
            raise TypeError(f"'{type(self).__name__}' object is not subscriptable")
        chosen = self.tocsr()[key]
        if isinstance(chosen, _spbase):
            return chosen.tocoo()
        return type(self)(chosen) if chosen.ndim else chosen

    def _transposed(self, copy: bool) -> Any:
        source = self.copy() if copy else self
        layout = replace(self._layout, shape=self.shape[::-1], canonical=False)
        return type(self)._of_layout(layout, source.data, source.col, source.row)


def _require_axes(shape: Any, count: int) -> None:
    if shape is not None and len(shape) != count:
        raise ValueError(f"cannot use a {len(shape)}-D shape {tuple(shape)} with a {count}-D input array")


def _within(row: Any, col: Any, shape: Any, axes: int) -> tuple[int, ...]:
    """Return the shape of a matrix with elements at ``row`` and ``col``.

    Raises:
        ValueError: An element lies outside of ``shape``.
    """
    first_row, last_row, first_col, last_col = bounds_of(row, col)
    if shape is None:
        shape = (last_col + 1,) if axes == 1 else (last_row + 1, last_col + 1)
    if len(shape) == 2 and last_row >= shape[0]:
        raise ValueError("row index exceeds matrix dimensions")
    if last_col >= shape[-1]:
        raise ValueError("column index exceeds matrix dimensions")
    if first_row < 0:
        raise ValueError("negative row index found")
    if first_col < 0:
        raise ValueError("negative column index found")
    return tuple(shape)


class coo_matrix(spmatrix, _coo_base):
    """A sparse matrix that is stored with coordinates."""


class coo_array(_coo_base, sparray):
    """A sparse array that is stored with coordinates. The array may have one axis."""

    _allow_nd = (1, 2)


def isspmatrix_coo(x: Any) -> bool:
    """Return whether ``x`` is a :class:`coo_matrix`."""
    return isinstance(x, coo_matrix)
