"""Sparse matrices and arrays that are stored by rows or by columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.sparse import host
from tcuda.emulation.cupyx.scipy.sparse.base import _spbase
from tcuda.emulation.cupyx.scipy.sparse.calls import call
from tcuda.emulation.cupyx.scipy.sparse.keys import device_key
from tcuda.emulation.cupyx.scipy.sparse.kinds import sparray, spmatrix
from tcuda.emulation.cupyx.scipy.sparse.layout import HOST, Layout
from tcuda.emulation.cupyx.scipy.sparse.parts import bounds_of, empty, get_index_dtype, is_dense, is_vector, supported
from tcuda.emulation.cupyx.scipy.sparse.shapes import checked_shape, is_shape
from tcuda.emulation.cupyx.scipy.sparse.stored_elements import StoredElements
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from typing_extensions import Self


class _Compressed(StoredElements, _spbase):
    """A matrix that is stored by rows or by columns.

    Args:
        arg1: A matrix, an array of the device, a matrix of SciPy, a shape, ``(data, (row, col))`` or
            ``(data, indices, indptr)``.
        shape: The shape; that of ``arg1`` if None.
        dtype: The type of the elements; that of ``arg1`` if None.
        copy: Whether to copy arrays that the matrix could share.
        maxprint: The most elements that ``str`` shows.

    Raises:
        ValueError: The arguments describe no matrix, or no matrix has elements of this type.
    """

    _major_axis = 0
    indices: Any
    indptr: Any
    _has_canonical_format: bool | None = None
    _has_sorted_indices: bool | None = None

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: int | None = None
    ) -> None:
        if maxprint is not None:
            self.maxprint = maxprint
        made = self._made(arg1, shape, dtype, copy)
        kind = supported(made.dtype if dtype is None else dtype)
        if kind != made.dtype:
            made = made._with_data(made.data.astype(kind), copy=False)
        self._adopt(made)

    def _made(self, arg1: Any, shape: Any, dtype: Any, copy: bool) -> Any:
        one_axis = _has_one_axis(arg1, shape)
        if one_axis and isinstance(self, sparray) and 1 not in self._allow_nd:
            raise ValueError(
                f"{type(self).__name__} does not support 1D input; use a 2D shape or coo_array / csr_array"
            )
        one_axis = one_axis and 1 in self._allow_nd
        lengths = None if shape is None else checked_shape(shape, self._allow_nd if one_axis else (2,))
        if isinstance(arg1, tuple) and len(arg1) == 3:
            return self._of_arrays(arg1, lengths, copy)
        if is_shape(arg1, self._allow_nd):
            size = checked_shape(arg1, self._allow_nd)
            index = get_index_dtype(maxval=max(size))
            major = 1 if len(size) == 1 else size[self._major_axis]
            return self._of_layout(
                Layout(self._name(), size), empty(0, dtype or "d"), empty(0, index), empty(major + 1, index)
            )
        if isinstance(arg1, _spbase):
            made = arg1.asformat(self.format)
            made = made.copy() if copy and arg1.format == self.format else made
        elif HOST.issparse(arg1):
            supported(dtype or arg1.dtype)
            made = self._uploaded(arg1.asformat(self.format))
        elif isinstance(arg1, tuple) and len(arg1) == 2:
            return self._class("coo")(arg1, shape, dtype, copy).asformat(self.format)
        elif is_dense(arg1):
            made = self._of_dense(arg1, dtype)
        else:
            raise ValueError("Unsupported initializer format")
        if lengths not in (None, made.shape):
            if made.ndim == 1 and len(lengths) == 2:
                if lengths[0] != 1:
                    raise ValueError(f"index pointer size (2) should be ({lengths[0] + 1})")
                return made.reshape(lengths).asformat(self.format)
            if one_axis or made.ndim != len(lengths):
                return self._class("coo")(made, lengths, dtype, copy).asformat(self.format)
            made = type(self)((*made._arrays(),), lengths)
        return made if type(made) is type(self) else self._of_layout(self._of(made), *made._arrays())

    def _of(self, other: _spbase) -> Layout:
        return replace(other._layout, name=self._name())

    def _uploaded(self, matrix: Any) -> Any:
        parts = (creation.array(part) for part in (matrix.data, matrix.indices, matrix.indptr))
        return self._of_layout(Layout(self._name(), tuple(map(int, matrix.shape))), *parts)

    def _of_dense(self, array: Any, dtype: Any) -> Any:
        if array.ndim > 2:
            raise ValueError("expected dimension <= 2 array or matrix")
        if array.ndim == 0 and isinstance(self, sparray):
            error = TypeError if 1 in self._allow_nd else ValueError
            raise error(f"{type(self).__name__} does not support scalar (0-D) input; provide an array with axes")
        array = array.astype(supported(dtype or array.dtype), copy=False)
        if 1 not in self._allow_nd:
            array = FUNCTIONS["atleast_2d"](array)
        return call(getattr(HOST, self._name()), (array,))

    def _of_arrays(self, arrays: Any, shape: tuple[int, ...] | None, copy: bool) -> Any:
        if not all(map(is_vector, arrays)):
            raise ValueError("data, indices, and indptr must be 1-D cupy arrays")
        data, indices, indptr = arrays
        if len(data) != len(indices):
            raise ValueError("indices and data should have the same size")
        if indptr.size:
            (first, _), (last, _) = bounds_of(indptr[:1]), bounds_of(indptr[-1:])
            if first != 0:
                raise ValueError(f"index pointer should start with 0 (got {first})")
            if last > data.size:
                raise ValueError(f"last index pointer ({last}) exceeds the size of data/indices ({data.size})")
            if last < data.size:
                data, indices = data[:last], indices[:last]
        index = get_index_dtype((indices, indptr), None if shape is None else max(shape), not isinstance(self, sparray))
        if shape is None:
            ends = (len(indptr) - 1, bounds_of(indices)[1] + 1)
            shape = ends if self._major_axis == 0 else ends[::-1]
        major = 1 if len(shape) == 1 else shape[self._major_axis]
        if len(indptr) != major + 1:
            raise ValueError(f"index pointer size ({len(indptr)}) should be ({major + 1})")
        data = data.copy() if copy else data
        cast = (part.astype(index, copy=copy) for part in (indices, indptr))
        return self._of_layout(Layout(self._name(), shape), data, *cast)

    @classmethod
    def _from_parts(
        cls,
        data: Any,
        indices: Any,
        indptr: Any,
        shape: Any,
        has_canonical_format: bool | None = None,
        has_sorted_indices: bool | None = None,
    ) -> Self:
        lengths = checked_shape(shape, cls._allow_nd)
        if not all(part.ndim == 1 for part in (data, indices, indptr)):
            raise ValueError("data, indices, and indptr must be 1-D")
        if indices.dtype != indptr.dtype:
            raise ValueError(f"indices and indptr must have the same dtype, got {indices.dtype} and {indptr.dtype}")
        if has_canonical_format and has_sorted_indices is False:
            raise ValueError(
                "has_canonical_format=True implies sorted indices, but has_sorted_indices=False was passed"
            )
        if data.size != indices.size:
            raise ValueError(f"data and indices must have the same length, got {data.size} and {indices.size}")
        major = 1 if len(lengths) == 1 else lengths[cls._major_axis]
        if indptr.size != major + 1:
            raise ValueError(f"indptr has length {indptr.size}, expected {major + 1} (major axis + 1)")
        most = np.iinfo(indices.dtype).max
        if max(lengths) > most:
            raise ValueError(f"shape {lengths} too large for index dtype {indices.dtype}")
        if data.size > most:
            raise ValueError(f"nnz {data.size} too large for index dtype {indices.dtype}")
        layout = Layout(cls._name(), lengths, has_canonical_format, has_canonical_format or has_sorted_indices)
        return cls._of_layout(layout, data, indices, indptr)

    @property
    def _layout(self) -> Layout:
        return Layout(self._name(), self._shape, self._has_canonical_format, self._has_sorted_indices)

    def _set(self, layout: Layout, arrays: Any) -> None:
        super()._set(layout, arrays)
        self._has_canonical_format, self._has_sorted_indices = layout.canonical, layout.canonical or layout.ordered

    @property
    def has_canonical_format(self) -> bool:
        """Whether no element is stored twice and all indices are sorted; may wait for the current stream."""
        if self._has_canonical_format is None:
            self._has_canonical_format = bool(
                self._has_sorted_indices is not False and call(host.is_canonical, (self,))
            )
            self._has_sorted_indices = self._has_canonical_format or self._has_sorted_indices
        return self._has_canonical_format

    @has_canonical_format.setter
    def has_canonical_format(self, value: bool) -> None:
        self._has_canonical_format = bool(value)
        if value:
            self._has_sorted_indices = True

    @property
    def has_sorted_indices(self) -> bool:
        """Whether all indices are sorted; may wait for the current stream."""
        if self._has_sorted_indices is None:
            self._has_sorted_indices = bool(call(host.is_sorted, (self,)))
        return self._has_sorted_indices

    @has_sorted_indices.setter
    def has_sorted_indices(self, value: bool) -> None:
        self._has_sorted_indices = bool(value)

    def _settle(self) -> None:
        if not self.has_canonical_format:
            self._adopt(call(host.changed("sum_duplicates"), (self,)))
            self._has_canonical_format = self._has_sorted_indices = True

    def sum_duplicates(self) -> None:
        """Sum elements that are stored twice, in place."""
        self._settle()

    def sort_indices(self) -> None:
        """Sort the indices in place."""
        if not self.has_sorted_indices:
            self._adopt(call(host.changed("sort_indices"), (self,)))
            self._has_sorted_indices = True

    def sorted_indices(self) -> Self:
        """Return a copy with sorted indices."""
        copy = self.copy()
        copy.sort_indices()
        return copy

    def prune(self) -> None:
        """Remove stored elements after the last index pointer, in place."""
        last = bounds_of(self.indptr[-1:])[1]
        if last > min(self.indices.size, self.data.size):
            raise ValueError("indices array has fewer than nnz elements")
        self.data, self.indices = self.data[:last], self.indices[:last]

    def __getitem__(self, key: Any) -> Any:
        key = device_key(key, self)
        chosen = call(host.selected, (self, key), name="indexing", room=_room(self, key))
        if isinstance(chosen, _spbase) and chosen.ndim == self.ndim == 2 and chosen.format != self.format:
            return chosen.asformat(self.format)
        return chosen

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, _spbase):
            value = self._uploaded_value(value)
        self._adopt(call(host.assigned, (self, device_key(key, self), value), name="indexing"))

    def _uploaded_value(self, value: Any) -> Any:
        if HOST.issparse(value):
            return type(self)(value)
        array: Any = creation.asarray(value, self.dtype)
        return array if array.ndim else array.reshape(1)[0]

    def _getrow(self, i: int) -> Any:
        self._require_place(i, 0)
        return self[slice(i, i + 1) if i != -1 else slice(-1, None), :].tocsr()

    def _getcol(self, j: int) -> Any:
        self._require_place(j, 1)
        return self[:, slice(j, j + 1) if j != -1 else slice(-1, None)]

    def _require_place(self, place: int, axis: int) -> None:
        if not -self.shape[axis] <= place < self.shape[axis]:
            raise IndexError(f"index ({place}) out of range")

    def _transposed(self, copy: bool) -> Any:
        source = self.copy() if copy else self
        other = self._class("csc" if self.format == "csr" else "csr")
        layout = replace(self._layout, name=other.__name__, shape=self.shape[::-1])
        return other._of_layout(layout, *source._arrays())


def _room(matrix: Any, key: Any) -> int:
    """Return the number of indices for which SciPy needs memory to select ``key``."""
    if matrix.ndim == 1:
        return 0
    place = 1 - matrix._major_axis
    if host.names_indices(key if isinstance(key, tuple) else (key,), place):
        return 0
    minor = key[place] if isinstance(key, tuple) and len(key) > place else key if place == 0 else ...
    plain = minor is None or minor is Ellipsis or isinstance(minor, (int, slice, np.integer, tuple))
    return 0 if plain else max(matrix.shape)


def _has_one_axis(arg1: Any, shape: Any) -> bool:
    """Return whether the arguments of a class describe an array with one axis."""
    if isinstance(arg1, (_spbase, Strided)) or HOST.issparse(arg1):
        return bool(arg1.ndim == 1 and (shape is None or len(shape) == 1))
    if shape is not None:
        return len(shape) == 1
    if isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
        return len(arg1[1]) == 1
    return isinstance(arg1, tuple) and len(arg1) == 1


class _csr_base(_Compressed):
    format = "csr"


class _csc_base(_Compressed):
    format = "csc"
    _major_axis = 1


class csr_matrix(spmatrix, _csr_base):
    """A sparse matrix that is stored by rows."""


class csr_array(_csr_base, sparray):
    """A sparse array that is stored by rows. The array may have one axis."""

    _allow_nd = (1, 2)


class csc_matrix(spmatrix, _csc_base):
    """A sparse matrix that is stored by columns."""


class csc_array(_csc_base, sparray):
    """A sparse array that is stored by columns."""


def isspmatrix_csr(x: Any) -> bool:
    """Return whether ``x`` is a :class:`csr_matrix`."""
    return isinstance(x, csr_matrix)


def isspmatrix_csc(x: Any) -> bool:
    """Return whether ``x`` is a :class:`csc_matrix`."""
    return isinstance(x, csc_matrix)
