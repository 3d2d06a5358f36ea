"""The two kinds of sparse classes: matrices and arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tcuda.emulation.cupyx.scipy.sparse.calls import call
from tcuda.emulation.cupyx.scipy.sparse.layout import HOST
from tcuda.emulation.cupyx.scipy.sparse.powers import power_of


class sparray:
    """The base of the classes of sparse arrays, whose ``*`` multiplies elements."""


class spmatrix:
    """The base of the classes of sparse matrices, whose ``*`` is the product of matrices.

    Args:
        args: The arguments of the class of a format.
        maxprint: The most elements that ``str`` shows.
        kwargs: The arguments of the class of a format, by name.
    """

    def __init__(self, *args: Any, maxprint: int = 50, **kwargs: Any) -> None:
        self.maxprint = maxprint
        if type(self) is spmatrix:
            if args or kwargs:
                raise TypeError("cannot instantiate spmatrix directly; use a format subclass such as csr_matrix")
            return
        super().__init__(*args, **kwargs)

    def __mul__(self: Any, other: Any) -> Any:
        return self._product(other)

    def __rmul__(self: Any, other: Any) -> Any:
        return self._reflected_product(other)

    def __pow__(self: Any, other: Any) -> Any:
        return power_of(self, other, lambda: call(HOST.identity, (self.shape[0], self.dtype, "csr"), reads=False))

    @property
    def A(self: Any) -> Any:
        """The matrix as an array of the device."""
        warnings.warn("`spmatrix.A` is deprecated; use `.toarray()` instead.", DeprecationWarning, stacklevel=2)
        return self.toarray()

    @property
    def H(self: Any) -> Any:
        """The transposed matrix of the complex conjugates."""
        warnings.warn("`spmatrix.H` is deprecated; use `.T.conj()` instead.", DeprecationWarning, stacklevel=2)
        return self.transpose().conj()

    def get_shape(self: Any) -> tuple[int, ...]:
        """Return the shape."""
        shape: tuple[int, ...] = self._shape
        return shape

    def set_shape(self: Any, shape: Any) -> None:
        """Set the shape in place."""
        self._adopt(self.reshape(shape).asformat(self.format))

    shape = property(get_shape, set_shape, doc="The lengths of the axes.")

    def asfptype(self: Any) -> Any:
        """Return the matrix with elements of a floating-point type."""
        return self if self.dtype.kind == "f" else self.astype(np.promote_types(self.dtype, "f"))

    def getH(self: Any) -> Any:
        """Return the transposed matrix of the complex conjugates."""
        return self.transpose().conj()

    def getrow(self: Any, i: int) -> Any:
        """Return a row."""
        return self._getrow(i)

    def getcol(self: Any, j: int) -> Any:
        """Return a column."""
        return self._getcol(j)

    def getformat(self: Any) -> str:
        """Return the format."""
        format: str = self.format
        return format

    def getmaxprint(self) -> int:
        """Return the most elements that ``str`` shows."""
        return self.maxprint

    def getnnz(self: Any, axis: Any = None) -> Any:
        """Return the number of stored elements."""
        return self._getnnz(axis)
