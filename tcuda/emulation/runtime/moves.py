"""Moves: the work of a captured operation, remade so that the work uses another array in the place of one array."""

from __future__ import annotations

import copy
import ctypes
import functools
import types
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tcuda._runtime.protocol import Move


class Movable:
    """Work of a class of its own whose attributes have addresses of memory of devices, or arrays over such memory."""

    __slots__ = ()

    def moved(self, mover: Mover) -> Any:
        """Return a copy of the work whose attributes are moved."""
        made = copy.copy(self)
        mover.enter(self, made)
        for name in getattr(self, "__dict__", None) or type(self).__slots__:
            object.__setattr__(made, name, mover.moved(getattr(self, name)))
        return made


class Mover:
    """Remakes the work of one operation with moved addresses.

    The work is a tree of partial functions, bound methods, tuples, lists, dictionaries and objects of :class:`Movable`.
    Its leaves are numbers, which may be addresses, and NumPy arrays over memory of devices.

    Args:
        move: The addresses that move.

    Attributes:
        uses: Whether the work has an address that moves.
        doubts: Whether the work has another address of the same allocation.
    """

    def __init__(self, move: Move) -> None:
        self.uses = False
        self.doubts = False
        self._move = move
        self._made: dict[int, tuple[Any, Any]] = {}
        """For each array and each object of ``Movable``, by its ``id``: the object itself, and the moved object."""

    def enter(self, known: Any, made: Any) -> None:
        """Let ``made`` take the place of ``known`` everywhere in the work."""
        self._made[id(known)] = known, made

    def address(self, address: int) -> int:
        """Return the address in the place of ``address``."""
        move = self._move
        if not move.block_begin <= address < move.block_end:
            return address
        if move.begin <= address < move.end:
            self.uses = True
            return address + move.offset
        self.doubts = True
        return address

    def moved(self, value: Any) -> Any:
        """Return ``value`` with moved addresses. An array that is met again gives the same array."""
        step = _STEPS.get(type(value))
        return self._other(value) if step is None else step(self, value)

    def _array(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        known = self._made.get(id(array))
        if known is not None:
            made: npt.NDArray[Any] = known[1]
            return made
        address = array.__array_interface__["data"][0]
        to = self.address(address) if array.size else address
        made = array if to == address else self._over(array, address)
        self.enter(array, made)
        return made

    def _over(self, array: npt.NDArray[Any], address: int) -> npt.NDArray[Any]:
        """Return an array like ``array``, which begins at ``address``, over the memory to which the address moves."""
        move = self._move
        # NumPy refuses an array that leaves its memory. Such an array uses a part of the allocation that does not move.
        memory: Any = (ctypes.c_char * (move.end - move.begin)).from_address(move.begin + move.offset)
        try:
            made: npt.NDArray[Any] = np.ndarray(array.shape, array.dtype, memory, address - move.begin, array.strides)
            return made
        except ValueError:
            self.doubts = True
            return array

    def _tuple(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([self.moved(each) for each in value])

    def _list(self, value: list[Any]) -> list[Any]:
        return [self.moved(each) for each in value]

    def _dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {self.moved(key): self.moved(each) for key, each in value.items()}

    def _partial(self, value: functools.partial[Any]) -> functools.partial[Any]:
        return functools.partial(self.moved(value.func), *self._list([*value.args]), **self._dict(value.keywords))

    def _method(self, value: types.MethodType) -> types.MethodType:
        owner = self.moved(value.__self__)
        return value if owner is value.__self__ else types.MethodType(value.__func__, owner)

    def _other(self, value: Any) -> Any:
        if isinstance(value, Movable):
            known = self._made.get(id(value))
            return value.moved(self) if known is None else known[1]
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return value._make(self._list([*value]))
        return value

    def packed(self, arguments: bytes, parameters: list[tuple[str, int, int]]) -> bytes:
        """Return the packed arguments of a kernel with moved addresses, also those in structures.

        Args:
            arguments: The bytes.
            parameters: The kind, the size and the offset of each parameter.
        """
        made = bytearray(arguments)
        for _, size, offset in parameters:
            for place in range(offset, offset + size - _WORD + 1, _WORD):
                word = int.from_bytes(arguments[place : place + _WORD], "little")
                made[place : place + _WORD] = (self.address(word) % 2**64).to_bytes(_WORD, "little")
        return bytes(made)


_WORD = 8

_STEPS: dict[type, Callable[[Mover, Any], Any]] = {
    int: Mover.address,
    np.ndarray: Mover._array,
    tuple: Mover._tuple,
    list: Mover._list,
    dict: Mover._dict,
    functools.partial: Mover._partial,
    types.MethodType: Mover._method,
    **dict.fromkeys((str, float, complex, bool, type(None), types.FunctionType, np.ufunc), lambda _, value: value),
}
"""What a mover does with the objects of a type; the types of other objects are looked at more closely."""
