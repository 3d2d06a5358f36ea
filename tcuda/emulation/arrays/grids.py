"""Objects that make arrays from the items in their brackets, such as ``mgrid`` and ``r_``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation, numpy_work

if TYPE_CHECKING:
    from collections.abc import Sequence


class Grid:
    """An object that makes arrays from the slices in its brackets, like the NumPy object with the same name.

    Args:
        name: The name of the object.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._grid = getattr(np, name)
        self.__doc__ = self._grid.__doc__
        self.__module__ = "tcuda.emulation.xp"

    _SEVERAL: tuple[type, ...] = (tuple, list)
    """The types of several items in the brackets."""

    def __getitem__(self, key: Any) -> Any:
        several = isinstance(key, self._SEVERAL)
        items = [self._item(item) for item in (key if several else (key,))]
        if any(isinstance(item, tuple) for item in items):
            return numpy_work.call(_grid_between, (self._name, several, items))
        return numpy_work.call(self._grid.__getitem__, (tuple(items) if several else items[0],))

    def __reduce__(self) -> str:
        return self._name

    def _item(self, item: Any) -> Any:
        if not isinstance(item, slice):
            raise AttributeError(f"{self._name}[...] takes slices, such as {self._name}[0:3]; got {item!r}.")
        parts = (item.start, item.stop, item.step)
        if any(isinstance(end, Strided) and end.size != 1 for end in parts):
            return parts
        ends = [creation.item(end) if isinstance(end, Strided) else end for end in parts]
        if any(isinstance(end, complex) for end in ends[:2]):
            raise TypeError(f"{self._name}[...] goes from one real number to another; got {ends[0]} to {ends[1]}.")
        return slice(*ends)


def _grid_between(name: str, several: bool, items: Sequence[Any]) -> Any:
    """Return a grid of the host, where the ends of the slices may be arrays.

    Args:
        name: The name of NumPy's object.
        several: Whether there are several items in the brackets.
        items: The slices, or tuples of their ends and their steps.
    """
    key = tuple([slice(*item) if isinstance(item, tuple) else item for item in items])
    return getattr(np, name)[key if several else key[0]]


class Joined(Grid):
    """An object that joins the arrays and numbers in its brackets to one array."""

    _SEVERAL = (tuple,)  # A list is an array.

    def _item(self, item: Any) -> Any:
        if isinstance(item, (slice, str)):
            raise NotImplementedError(
                f"{self._name}[...] joins arrays and numbers, and takes no slices and no texts, unlike NumPy's; got "
                f"{item!r}. Make an array of a slice with arange()."
            )
        return creation.asarray(item) if isinstance(item, (list, tuple, np.ndarray)) else item
