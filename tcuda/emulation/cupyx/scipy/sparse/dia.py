"""Sparse matrices and arrays that are stored by diagonals."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.cupyx.scipy.sparse import host
from tcuda.emulation.cupyx.scipy.sparse.base import _spbase
from tcuda.emulation.cupyx.scipy.sparse.calls import call, wait_for_contents
from tcuda.emulation.cupyx.scipy.sparse.kinds import sparray, spmatrix
from tcuda.emulation.cupyx.scipy.sparse.layout import HOST, Layout
from tcuda.emulation.cupyx.scipy.sparse.parts import get_index_dtype
from tcuda.emulation.cupyx.scipy.sparse.shapes import checked_shape
from tcuda.emulation.work import creation


class _dia_base(_spbase):
    """A matrix that is stored by diagonals.

    Args:
        arg1: ``(data, offsets)``, or a matrix of SciPy.
        shape: The shape, which a matrix of SciPy has itself.
        dtype: The type of the elements; that of ``arg1`` if None.
        copy: Whether to copy arrays that the matrix could share.
        maxprint: The most elements that ``str`` shows.

    Raises:
        ValueError: The arguments describe no matrix.
    """

    format = "dia"
    offsets: Any

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: int | None = None
    ) -> None:
        if maxprint is not None:
            self.maxprint = maxprint
        if HOST.issparse(arg1):
            matrix = arg1.todia()
            data, offsets, shape, dtype = matrix.data, matrix.offsets, matrix.shape, matrix.dtype
        elif isinstance(arg1, tuple):
            data, offsets = arg1
            if shape is None:
                raise ValueError("expected a shape argument")
        else:
            raise ValueError("unrecognized form for dia_matrix constructor")
        data = FUNCTIONS["atleast_2d"](creation.array(data, dtype, copy or None))
        index = get_index_dtype(maxval=max(shape))
        offsets = FUNCTIONS["atleast_1d"](creation.array(offsets, index, copy or None))
        if offsets.ndim != 1:
            raise ValueError("offsets array must have rank 1")
        if data.ndim != 2:
            raise ValueError("data array must have rank 2")
        if data.shape[0] != len(offsets):
            raise ValueError(
                f"number of diagonals ({data.shape[0]}) does not match the number of offsets ({len(offsets)})"
            )
        wait_for_contents(type(self).__name__)
        if len(FUNCTIONS["unique"](offsets)) != len(offsets):
            raise ValueError("offset array contains duplicate values")
        self._set(Layout(self._name(), checked_shape(shape)), (data, offsets))

    def _getnnz(self, axis: Any = None) -> int:
        if axis is not None:
            raise NotImplementedError("getnnz over an axis is not implemented for DIA format")
        count: int = call(host.stored, (self,), name="nnz")
        return count

    def tocsc(self, copy: bool = False) -> Any:
        """Return the matrix by columns."""
        return call(host.columns_of_diagonals, (self,), name="tocsc", room=self.shape[1])

    def tocsr(self, copy: bool = False) -> Any:
        """Return the matrix by rows."""
        return self._converted("csr", copy, True)

    def tocoo(self, copy: bool = False) -> Any:
        """Return the matrix with coordinates."""
        return self.tocsr().tocoo()


class dia_matrix(spmatrix, _dia_base):
    """A sparse matrix that is stored by diagonals."""


class dia_array(_dia_base, sparray):
    """A sparse array that is stored by diagonals."""


def isspmatrix_dia(x: Any) -> bool:
    """Return whether ``x`` is a :class:`dia_matrix`."""
    return isinstance(x, dia_matrix)
