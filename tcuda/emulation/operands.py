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
        hosts: What was put in place of each.
    """

    def __init__(self) -> None:
        self.arrays: list[Strided] = []
        self.hosts: list[npt.NDArray[Any]] = []

    def take(self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return ``args`` and ``kwargs`` as :meth:`host` returns each of them."""
        return [self.host(value) for value in args], {name: self.host(value) for name, value in (kwargs or {}).items()}

    def host(self, argument: Any) -> Any:
        """Return ``argument`` with NumPy's arrays in place of those of a device.

        Raises:
            TypeError: There is an array of NumPy's in it: a kernel reads no host memory.
        """
        if isinstance(argument, Strided):
            self.arrays.append(argument)
            self.hosts.append(self._host_of(argument))
            return self.hosts[-1]
        if isinstance(argument, np.ndarray):
            raise TypeError(f"Unsupported type {type(argument)}")
        if isinstance(argument, tuple):
            return tuple(map(self.host, argument))
        if isinstance(argument, list):
            return list(map(self.host, argument))
        return argument

    def view_of(self, host: npt.NDArray[Any]) -> Strided | None:
        """Return ``host`` as an array if it is a view of the memory of one of them, None if it has its own."""
        base = next((array for array in self.arrays if array._block.holds(host)), None)
        return None if base is None else Strided.array_type._view_of(base, host)

    def _host_of(self, array: Strided) -> npt.NDArray[Any]:
        """Return what stands for ``array``: here an array over the same memory, which it keeps alive."""
        return array._host


class Aliases(Operands):
    """Operands in whose place there are arrays over the same memory that do not keep it alive.

    A graph holds what it works on. Arrays that die in a capture must still give their memory back, for those that
    follow in the same capture.
    """

    def _host_of(self, array: Strided) -> npt.NDArray[Any]:
        return array._over(array._block.alias())


class StandIns(Operands):
    """Operands in whose place there are arrays of zeros.

    A function shows by them what it will return, before there is anything in the arrays themselves. Nothing refuses
    zeros: they are valid indices and valid exponents, they are sorted, and there is no NaN among them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._zeros: dict[int, npt.NDArray[Any]] = {}

    def view_of(self, host: npt.NDArray[Any]) -> Strided | None:
        """Return the view that ``host``, itself one of zeros, stands for."""
        for array in self.arrays:
            block = array._block
            offset = host.ctypes.data - self._zeros_for(array).ctypes.data
            if host.base is not None and 0 <= offset < block.size:
                view = np.ndarray(host.shape, host.dtype, block.host(), offset, host.strides)
                return Strided.array_type._view_of(array, view)
        return None

    def _host_of(self, array: Strided) -> npt.NDArray[Any]:
        return array._over(self._zeros_for(array))

    def _zeros_for(self, array: Strided) -> npt.NDArray[Any]:
        """Return what stands for the block of ``array``, the same for all arrays over it."""
        block = array._block
        if block.ptr not in self._zeros:
            self._zeros[block.ptr] = np.zeros(block.size, np.uint8)
        return self._zeros[block.ptr]


class Results:
    """What a function of NumPy's returned, on its way into the memory of the device.

    Args:
        result: An array, a scalar, anything else, or a tuple or list of such.
        operands: What the function was given.
        views: Whether the function gives views of its first argument; an array without elements then counts as one,
            though it has no address to tell it by.

    Attributes:
        fresh: The arrays and scalars among them that need memory.
        places: Where these are among all arrays and scalars of the result, as :func:`parts` returns them.
    """

    def __init__(self, result: Any, operands: Operands, *, views: bool) -> None:
        self.fresh: list[npt.NDArray[Any]] = []
        self.places: list[int] = []
        self._operands = operands
        self._views = views
        self._parts = 0
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
        self._parts += 1
        for array, own in zip(self._operands.arrays, self._operands.hosts, strict=True):
            if own is host:
                return lambda _: array
        view = self._operands.view_of(host)
        if view is None and self._views and not host.size and self._operands.arrays:
            view = Strided.array_type._view_of(self._operands.arrays[0], host)
        if view is not None:
            return lambda _: view
        place = len(self.fresh)
        self.fresh.append(host)
        self.places.append(self._parts - 1)
        return lambda arrays: arrays[place]


def parts(result: Any) -> list[Any]:
    """Return the arrays and scalars in ``result``, as a list without any nesting."""
    if isinstance(result, (np.ndarray, *SCALARS)):
        return [result]
    if isinstance(result, (tuple, list)):
        return [part for inner in result for part in parts(inner)]
    return []
