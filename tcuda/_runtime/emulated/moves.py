"""Moves: the work of a captured operation, remade so that the work uses another array in the place of one array."""

from __future__ import annotations

import copy
import ctypes
import functools
import types
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
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
        """For each object by its ``id``: the object, which must live as long as its ``id``, and the moved object."""

    def enter(self, known: Any, made: Any) -> None:
        """Let ``made`` take the place of ``known`` everywhere in the work."""
        self._made[id(known)] = known, made

    def address(self, address: int) -> int:
        """Return the address in the place of ``address``."""
        move = self._move
        if move.begin <= address < move.end:
            self.uses = True
            return address + move.offset
        if move.block_begin <= address < move.block_end:
            self.doubts = True
        return address

    def moved(self, value: Any) -> Any:
        """Return ``value`` with moved addresses. The same object, met again, gives the same result."""
        kind = type(value)
        if kind is int:
            return self.address(value)
        if value is None or kind in (bool, float, str, complex):
            return value
        known = self._made.get(id(value))
        if known is None:
            made = self._remade(value)
            known = self._made.setdefault(id(value), (value, made))
        return known[1]

    def _remade(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, Movable):
            return value.moved(self)
        if isinstance(value, functools.partial):
            options = {name: self.moved(each) for name, each in value.keywords.items()}
            return functools.partial(self.moved(value.func), *map(self.moved, value.args), **options)
        if isinstance(value, types.MethodType):
            owner = self.moved(value.__self__)
            return value if owner is value.__self__ else types.MethodType(value.__func__, owner)
        if isinstance(value, tuple):
            items = [self.moved(each) for each in value]
            return value._make(items) if hasattr(value, "_make") else tuple(items)
        if isinstance(value, list):
            return [self.moved(each) for each in value]
        if isinstance(value, dict):
            return {self.moved(key): self.moved(each) for key, each in value.items()}
        return value

    def _array(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        address = array.ctypes.data
        to = self.address(address) if array.size else address
        if to == address:
            return array
        # NumPy takes an offset into a buffer, and strides may lead to addresses below that of the first element.
        spans = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
        below, above = sum(min(0, span) for span in spans), sum(max(0, span) for span in spans)
        memory = (ctypes.c_char * (above - below + array.itemsize)).from_address(to + below)
        made: npt.NDArray[Any] = np.ndarray(array.shape, array.dtype, memory, -below, array.strides)
        return made

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
