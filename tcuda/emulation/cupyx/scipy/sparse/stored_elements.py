"""Methods that find or change the stored elements of sparse matrices."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.cupyx.scipy.sparse import host
from tcuda.emulation.cupyx.scipy.sparse.calls import call
from tcuda.emulation.cupyx.scipy.sparse.shapes import checked_axis
from tcuda.emulation.work import creation


class StoredElements:
    """Methods of matrices that are stored by rows, by columns or with coordinates."""

    def max(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """Return the largest element, or the largest elements along an axis."""
        return self._extreme("max", axis, out, explicit)

    def min(self, axis: Any = None, out: None = None, *, explicit: bool = False) -> Any:
        """Return the least element, or the least elements along an axis."""
        return self._extreme("min", axis, out, explicit)

    def argmax(self, axis: Any = None, out: None = None) -> Any:
        """Return the place of the largest element, or the places along an axis."""
        return self._place("argmax", axis, out)

    def argmin(self, axis: Any = None, out: None = None) -> Any:
        """Return the place of the least element, or the places along an axis."""
        return self._place("argmin", axis, out)

    def eliminate_zeros(self: Any) -> None:
        """Remove stored zeros in place."""
        self._adopt(call(host.changed("eliminate_zeros"), (self,)))

    def setdiag(self: Any, values: Any, k: int = 0) -> None:
        """Set a diagonal in place."""
        self._require_2d("setdiag")
        rows, columns = self.shape
        if (k > 0 and k >= columns) or (k < 0 and -k >= rows):
            raise ValueError("k exceeds matrix dimensions")
        values = creation.asarray(values, self.dtype)
        if values.ndim > 1:
            raise ValueError("values must be 0-d or 1-d")
        self._adopt(call(host.changed("setdiag"), (self, values, k)))

    def _extreme(self: Any, name: str, axis: Any, out: None, explicit: bool) -> Any:
        axis = self._admitted(axis, out)
        if not all(self.shape if axis is None else (self.shape[axis],)):
            raise ValueError("zero-size array to reduction operation")
        self._settle()
        return call(host.extreme, (self, name, axis, explicit), name=name)

    def _place(self: Any, name: str, axis: Any, out: None) -> Any:
        axis = self._admitted(axis, out)
        if axis is None and 0 in self.shape:
            raise ValueError("Can't apply the operation to an empty matrix.")
        if axis is not None and not self.shape[axis]:
            raise ValueError("Can't apply the operation along a zero-sized dimension.")
        if axis is None and self.nnz == 0:
            return 0
        self._settle()
        return call(host.place, (self, name, axis), name=name)

    def _admitted(self: Any, axis: Any, out: None) -> int | None:
        if out is not None:
            raise ValueError("Sparse matrices do not support an 'out' parameter.")
        return checked_axis(axis[0] if isinstance(axis, tuple) and self.ndim == 1 else axis, self.ndim)
