"""Iterators over the elements of arrays, in row-major order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda.emulation.work import creation, indexing, numpy_work

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Self

    from tcuda.emulation.devices.strided import Strided


class flatiter:
    """An iterator over the elements of an array in row-major order, like ``cupy.flatiter``.

    ``x.flat`` is such an iterator. Its brackets take an integer, a slice or an Ellipsis.

    Args:
        a: The array.
    """

    __module__ = "tcuda.emulation.xp"  # where users find the class

    def __init__(self, a: Strided) -> None:
        self._base = a
        self._index = 0

    @property
    def base(self) -> Strided:
        """The array whose elements the iterator returns."""
        return self._base

    def copy(self) -> Strided:
        """Return a copy of all elements, as an array with one axis."""
        copied: Strided = numpy_work.call(np.ndarray.flatten, (self._base,))
        return copied

    def __len__(self) -> int:
        return self._base.size

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Strided:
        index = self._index
        if index == len(self):
            raise StopIteration
        self._index += 1
        return self[index]

    def __getitem__(self, ind: Any) -> Strided:
        place = self._place(ind)
        if isinstance(place, slice):
            part: Strided = numpy_work.call(_part, (self._base, place))
            return part
        return creation.array(indexing.getitem(self._base, place), order="C")

    def __setitem__(self, ind: Any, value: Any) -> None:
        place = self._place(ind)
        if isinstance(place, slice):
            values = creation.asarray(value, self._base.dtype)
            numpy_work.modify(_assign, (self._base, place, values))
        else:
            indexing.setitem(self._base, place, value)

    def _place(self, ind: Any) -> slice | tuple[int, ...]:
        """Return the place of ``ind`` among all elements, or the indices of one element.

        Raises:
            IndexError: ``ind`` is neither an integer nor a slice nor an Ellipsis.
        """
        if ind is Ellipsis:
            return slice(None)
        if isinstance(ind, slice):
            return ind
        if isinstance(ind, bool) or not np.isscalar(ind):
            raise IndexError("unsupported iterator index")
        rest = int(cast("int", ind))
        size = self._base.size
        indices = []
        for length in self._base.shape:
            size //= length
            index, rest = divmod(rest, size)
            indices.append(index)
        return tuple(indices)


def _part(a: npt.NDArray[Any], place: slice) -> npt.NDArray[Any]:
    part: npt.NDArray[Any] = a.flat[place]
    return part


def _assign(a: npt.NDArray[Any], place: slice, values: npt.NDArray[Any]) -> None:
    a.flat[place] = values
