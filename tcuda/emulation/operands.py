"""Between the arguments and results of NumPy's functions and those of the functions of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.strided import Strided

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

SCALARS = (bool, int, float, complex, np.generic)
"""What counts as a scalar argument of a kernel."""


class Operands:
    """The arrays among the arguments of a function, gathered while NumPy's are put in their place.

    Attributes:
        arrays: The arrays, in the order of the arguments.
    """

    def __init__(self) -> None:
        self.arrays: list[Strided] = []

    def take(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return ``args`` and ``kwargs`` as :meth:`host` returns each of them."""
        return [self.host(value) for value in args], {name: self.host(value) for name, value in (kwargs or {}).items()}

    def host(self, argument: Any) -> Any:
        """Return ``argument`` with NumPy's arrays, over the same memory, in place of those of a device.

        Raises:
            TypeError: There is an array of NumPy's in it: a kernel reads no host memory.
        """
        if isinstance(argument, Strided):
            self.arrays.append(argument)
            return argument._host
        if isinstance(argument, np.ndarray):
            raise TypeError(f"Unsupported type {type(argument)}")
        if isinstance(argument, tuple):
            return tuple(map(self.host, argument))
        if isinstance(argument, list):
            return list(map(self.host, argument))
        return argument

    def base_of(self, host: npt.NDArray[Any]) -> Strided | None:
        """Return the array of whose memory ``host`` is a view, None if it has its own."""
        return next((array for array in self.arrays if array._block.holds(host)), None)


class Results:
    """What a function of NumPy's returned, on its way into the memory of the device.

    Args:
        result: An array, a scalar, anything else, or a tuple or list of such.
        operands: What the function was given.
        views: Whether the function gives views of its first argument; an array without elements then counts as one,
            though it has no address to tell it by.

    Attributes:
        fresh: The arrays and scalars among them that need memory.
    """

    def __init__(self, result: Any, operands: Operands, *, views: bool) -> None:
        self.fresh: list[npt.NDArray[Any]] = []
        self._operands = operands
        self._views = views
        self._remake = self._gather(result)

    def remade(self, arrays: Sequence[Strided]) -> Any:
        """Return what the function returned, with ``arrays`` in place of those in :attr:`fresh`."""
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
        for array in self._operands.arrays:
            if array._host is host:
                return lambda _: array
        base = self._operands.base_of(host)
        if base is None and self._views and not host.size and self._operands.arrays:
            base = self._operands.arrays[0]
        if base is not None:
            view = Strided.array_type._view_of(base, host)
            return lambda _: view
        place = len(self.fresh)
        self.fresh.append(host)
        return lambda arrays: arrays[place]
