"""The layout of a sparse matrix: the facts that describe the matrix beside its arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.cupyx.scipy.host_modules import scipy_module

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST = scipy_module("sparse")
"""SciPy's module, which computes."""

ARRAYS = {
    "coo": ("data", "row", "col"),
    "csc": ("data", "indices", "indptr"),
    "csr": ("data", "indices", "indptr"),
    "dia": ("data", "offsets"),
}
"""The names of the arrays of a matrix, by format."""

DTYPES = "?fdFD"
"""The dtypes of matrices, as the characters of NumPy."""


@dataclass(frozen=True)
class Layout:
    """The layout of a sparse matrix.

    Attributes:
        name: The name of the class, such as ``"csr_matrix"``, which SciPy's class has too.
        shape: The shape of the matrix.
        canonical: Whether no element is stored twice and all indices are sorted; None if nobody has looked.
        ordered: Whether the indices are sorted; None if nobody has looked.
    """

    name: str
    shape: tuple[int, ...]
    canonical: bool | None = None
    ordered: bool | None = None

    @property
    def format(self) -> str:
        """The format, such as ``"csr"``."""
        return self.name[:3]

    def on_host(self, arrays: Sequence[Any]) -> Any:
        """Return SciPy's matrix over ``arrays``, which are NumPy arrays.

        SciPy sorts the indices of some arguments in place. So a matrix that may need this has copies of the arrays.
        Zeros that stand in for contents are no matrix: then the first row has all elements.
        """
        kind = getattr(HOST, self.name)
        if self.format == "dia":
            data, offsets = arrays
            standing_in = offsets.size > 1 and not offsets.any()
            return kind((data, np.arange(offsets.size, dtype=offsets.dtype) if standing_in else offsets), self.shape)
        if self.format == "coo":
            data, coords = arrays[0], tuple(arrays[1:] if len(self.shape) == 2 else arrays[2:])
            made = kind((data, coords), shape=self.shape)
            made.data, made.coords = data, coords  # the constructor may convert the indices
            made.has_canonical_format = bool(self.canonical)
            return made
        data, indices, indptr = arrays
        if indptr.size and indptr[-1] != indices.size:
            indptr = np.full_like(indptr, indices.size)
            indptr[:1] = 0
        self._require_places(indices, indptr)
        if not self.canonical:
            data, indices, indptr = data.copy(), indices.copy(), indptr.copy()
        made = kind((data, indices, indptr), shape=self.shape)
        made.data, made.indices, made.indptr = data, indices, indptr
        if self.canonical:
            made.has_canonical_format = True
        return made

    def _require_places(self, indices: Any, indptr: Any) -> None:
        """Refuse indices beyond the matrix, which neither SciPy nor CuPy checks: SciPy writes to wrong memory then.

        Raises:
            ValueError: An index is beyond the matrix, or a row or a column ends before it begins.
        """
        length = self.shape[0] if self.format == "csc" else self.shape[-1]
        if indices.size and not (indices.min() >= 0 and indices.max() < length):
            wrong = indices[(indices < 0) | (indices >= length)][0]
            raise ValueError(
                f"The indices of a {self.name} of the shape {self.shape} are from 0 to {length - 1}; found {wrong}. "
                "On a GPU, such a matrix uses wrong memory."
            )
        if indptr.size and (indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any()):
            raise ValueError(
                f"The array indptr of a {self.name} begins with 0 and never decreases. On a GPU, such a matrix uses "
                "wrong memory."
            )


def taken_apart(matrix: Any, facts: bool, long: bool) -> tuple[Layout, tuple[Any, ...]]:
    """Return the layout of ``matrix``, a matrix of SciPy, and its arrays.

    Args:
        matrix: The matrix.
        facts: Whether the contents of the matrix are true, and no results from zeros that stand in for contents.
        long: Whether indices are returned with 64 bits.
    """
    if matrix.format not in ARRAYS:
        matrix = matrix.tocsr()
    data = matrix.data
    if data.dtype.char not in DTYPES:
        data = data.astype(np.complex128 if data.dtype.kind == "c" else np.float64)
    layout = Layout(type(matrix).__name__, tuple(map(int, matrix.shape)))
    if matrix.format == "dia":
        return layout, (data, matrix.offsets)
    if matrix.format == "coo":
        layout = replace(layout, canonical=bool(facts and matrix.has_canonical_format))
        coords = matrix.coords
        return layout, (data, *_long([*([np.zeros_like(coords[0])] if len(coords) == 1 else []), *coords], long))
    if facts:
        layout = replace(layout, canonical=bool(matrix.has_canonical_format), ordered=bool(matrix.has_sorted_indices))
    return layout, (data, *_long([matrix.indices, matrix.indptr], long))


def _long(indices: list[Any], long: bool) -> list[Any]:
    """Return arrays of indices with elements of the same type, which has 64 bits if ``long`` is true."""
    kind = np.dtype(np.int64) if long else np.result_type(*indices)
    return [part.astype(kind, copy=False) for part in indices]
