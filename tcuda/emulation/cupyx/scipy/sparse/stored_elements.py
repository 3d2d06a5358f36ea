"""The least and the largest elements of sparse matrices, and their places."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.cupyx.scipy.sparse import host
from tcuda.emulation.cupyx.scipy.sparse.calls import call
from tcuda.emulation.cupyx.scipy.sparse.shapes import checked_axis


class Extremes:
    """Methods of matrices of the formats whose least and largest elements CuPy finds."""

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
