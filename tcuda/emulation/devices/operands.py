"""Operands: the conversion of arguments from arrays of a device to NumPy arrays, and of results back."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._process.asleep import asleep, refuse_asleep
from tcuda.emulation.devices.strided import Strided

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from tcuda.emulation.devices.memory import Block

SCALARS = (bool, int, float, complex, np.generic)
"""The types of the scalars that a kernel takes."""

_PLAIN = frozenset([bool, int, float, complex, str, slice, type(None), type(Ellipsis)])
"""The types of arguments that cannot contain an array."""


class Operands:
    """The arrays of a device among the arguments of a function, and the NumPy arrays that take their places.

    Args:
        host_of: Returns the NumPy array that takes the place of an array. By default, this is the NumPy array over the
            same memory, which keeps the memory alive.

    Attributes:
        arrays: The arrays of a device, in the order of the arguments.
        hosts: The NumPy array that took the place of each array.
    """

    def __init__(self, host_of: Callable[[Strided], npt.NDArray[Any]] = operator.attrgetter("_host")) -> None:
        self.arrays: list[Strided] = []
        self.hosts: list[npt.NDArray[Any]] = []
        self._host_of = host_of

    def take(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return ``args`` and ``kwargs``, each argument as :meth:`host` returns it."""
        taken = []
        for value in args:
            taken.append(value if type(value) in _PLAIN else self.host(value))
        named = {}
        if kwargs:
            for name, value in kwargs.items():
                named[name] = value if type(value) in _PLAIN else self.host(value)
        return taken, named

    def host(self, argument: Any) -> Any:
        """Return ``argument`` with NumPy arrays in the places of arrays of a device.

        Raises:
            RuntimeError: The memory of an array is asleep.
            TypeError: ``argument`` contains a NumPy array, but a kernel cannot read memory of the host.
        """
        if isinstance(argument, Strided):
            if asleep:
                refuse_asleep((argument._block.ptr,))
            host = self._host_of(argument)
            self.arrays.append(argument)
            self.hosts.append(host)
            return host
        if isinstance(argument, np.ndarray):
            raise TypeError(f"Unsupported type {type(argument)}")
        if isinstance(argument, (tuple, list)):
            items = [item if type(item) in _PLAIN else self.host(item) for item in argument]
            return tuple(items) if isinstance(argument, tuple) else items
        return argument

    def view_of(self, host: npt.NDArray[Any]) -> Strided | None:
        """Return ``host`` as a view of one of the arrays; None if ``host`` has memory of its own."""
        if host.base is not None:
            for array in self.arrays:
                if array._block.holds(host):
                    return type(array)._view_of(array, host)
        return None


def alias_of(array: Strided) -> npt.NDArray[Any]:
    """Return a NumPy array over the memory of ``array`` that does not keep the memory alive.

    A graph holds the arrays of its work. An array that is deleted in a capture must still give its memory back, because
    later arrays of the same capture may need the memory.
    """
    return array._over(array._block.alias())


class Zeros:
    """Arrays of zeros, one for each block of memory."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[int, int], npt.NDArray[Any]] = {}

    def for_block(self, block: Block) -> npt.NDArray[Any]:
        """Return the zeros that stand for the bytes of ``block``."""
        place = block.ptr, block.size  # A block of another library may be a part of a block.
        if place not in self._by_place:
            self._by_place[place] = np.zeros(block.size, np.uint8)
        return self._by_place[place]

    def stand_in(self, array: Strided) -> npt.NDArray[Any]:
        """Return an array of zeros with the layout of ``array``, a view of the zeros for its block."""
        return array._over(self.for_block(array._block))


class StandIns(Operands):
    """Operands for which arrays of zeros stand in.

    A call with zeros gives the shapes and types of the results before the arrays have contents. No function refuses
    zeros: they are valid indices and exponents, they are sorted, and they contain no NaN.
    """

    def __init__(self) -> None:
        self._zeros = Zeros()
        super().__init__(self._zeros.stand_in)

    def view_of(self, host: npt.NDArray[Any]) -> Strided | None:
        """Return the view for which ``host``, a view of zeros, stands; None if ``host`` has memory of its own."""
        if host.base is not None:
            for array in self.arrays:
                block = array._block
                offset = host.ctypes.data - self._zeros.for_block(block).ctypes.data
                if 0 <= offset < block.size:
                    view = np.ndarray(host.shape, host.dtype, block.host(), offset, host.strides)
                    return type(array)._view_of(array, view)
        return None


class Results:
    """The results of a NumPy function, which are to be stored in memory of the device.

    Args:
        result: An array, a scalar, any other object, or a tuple or list of these.
        operands: The operands of the function.
        views: Whether the function returns views of its first argument. An array without elements then counts as a
            view, too, because its address does not tell.

    Attributes:
        fresh: The arrays and scalars of the result that need memory.
        places: The index of each item of ``fresh`` among all arrays and scalars of the result (:func:`parts`).
    """

    def __init__(self, result: Any, operands: Operands, *, views: bool) -> None:
        self.fresh: list[npt.NDArray[Any]] = []
        self.places: list[int] = []
        self._operands = operands
        self._views = views
        self._parts = 0
        self._remake = self._gather(result)

    def remade(self, arrays: Sequence[Strided]) -> Any:
        """Return the results of the function, with ``arrays`` in the places of the items of :attr:`fresh`."""
        return self._remake(arrays)

    def _gather(self, result: Any) -> Callable[[Sequence[Strided]], Any]:
        if isinstance(result, np.ndarray):
            return self._gather_array(result)
        if isinstance(result, SCALARS):
            return self._gather_array(np.asarray(result))
        if isinstance(result, (tuple, list)):
            parts = [self._gather(part) for part in result]
            # The results of numpy.linalg and numpy.unique_all are named tuples, which take their parts one by one.
            kind = getattr(result, "_make", type(result))
            return lambda arrays: kind(part(arrays) for part in parts)
        return lambda _: result

    def _gather_array(self, host: npt.NDArray[Any]) -> Callable[[Sequence[Strided]], Any]:
        self._parts += 1
        for place, own in enumerate(self._operands.hosts):
            if own is host:
                array = self._operands.arrays[place]
                return lambda _: array
        view = self._operands.view_of(host)
        if view is None and self._views and not host.size and self._operands.arrays:
            first = self._operands.arrays[0]
            view = type(first)._view_of(first, host)
        if view is not None:
            return lambda _: view
        new = len(self.fresh)
        self.fresh.append(host)
        self.places.append(self._parts - 1)
        return lambda arrays: arrays[new]


def parts(result: Any) -> list[Any]:
    """Return the arrays and scalars in ``result`` as a flat list."""
    if isinstance(result, (np.ndarray, *SCALARS)):
        return [result]
    if isinstance(result, (tuple, list)):
        return [part for inner in result for part in parts(inner)]
    return []
