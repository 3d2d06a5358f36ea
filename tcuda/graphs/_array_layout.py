"""The layout of an array in the memory of a device, by which another array can take its place."""

from __future__ import annotations

from typing import Any, NamedTuple

from tcuda._base.arguments import a_kind
from tcuda._base.strides import byte_bounds, packed_strides
from tcuda._process.lazy import cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import Move

_ALIGNMENT = 16
"""The bytes of the widest access of a thread. Libraries choose their kernels by this alignment of an address."""


class ArrayLayout(NamedTuple):
    """An array in the memory of a device.

    Attributes:
        address: The address of the first element.
        shape: The lengths of the axes.
        strides: The bytes from one element to the next along each axis.
        typestr: The type of the elements, as in ``__cuda_array_interface__``.
        itemsize: The bytes of an element.
        device: The index of the device.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    typestr: str
    itemsize: int
    device: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The address of the first byte of all elements, and the address behind the last one."""
        return byte_bounds(self.address, self.itemsize, self.shape, self.strides)

    def move_to(self, other: ArrayLayout) -> Move:
        """Return the move of the addresses of this array to the memory of ``other``."""
        begin, end = self.bounds
        block = ledger().block_at(self.device, begin)
        if block is None:  # memory that tcuda has not allocated
            return Move(begin, end, other.address - self.address, begin, end)
        block_begin, requested, size, *_ = block
        block_end = block_begin + size
        if begin == block_begin and end >= block_begin + requested:
            # An address behind the last element, such as the end of a range, belongs to the array, too.
            end = block_end
        return Move(begin, end, other.address - self.address, block_begin, block_end)


def layout_of(array: Any, name: str) -> ArrayLayout:
    """Return the layout of ``array``, the argument ``name``.

    Raises:
        RuntimeError: ``array`` is in memory of the host.
        TypeError: ``array`` is not an array of a device.
    """
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"replace() takes arrays of a device; {name} is {a_kind(array)}.")
    shape, typestr, address = interface["shape"], interface["typestr"], interface["data"][0]
    itemsize = int(typestr[2:])
    strides = interface.get("strides")
    if strides is None:
        strides = packed_strides(itemsize, shape)
    device = cuda.pointerGetDevice(address) if address else -1
    if device < 0 and 0 not in shape:
        raise RuntimeError(f"replace() takes arrays of a device; {name} is in memory of the host.")
    return ArrayLayout(address, tuple(shape), tuple(strides), typestr, itemsize, device)


def move_between(old: Any, new: Any) -> Move:
    """Return the move of the addresses of the array ``old`` to the memory of the array ``new``.

    Raises:
        RuntimeError: The arrays differ in their layout, one of them has no elements, or ``new`` is aligned worse.
        TypeError: One of them is not an array of a device.
    """
    before, after = layout_of(old, "old"), layout_of(new, "new")
    for what in ("shape", "typestr", "strides", "device"):
        one, other = getattr(before, what), getattr(after, what)
        if one != other:
            word = "dtype" if what == "typestr" else what
            raise RuntimeError(
                f"replace() takes two arrays of the same shape, dtype, strides and device, but the {word} of old is "
                f"{one} and the {word} of new is {other}. Copy new into an array that is laid out as old."
            )
    if 0 in before.shape:
        raise RuntimeError(f"replace(): old has the shape {before.shape} and so no elements that a graph could use.")
    if before.address % _ALIGNMENT == 0 and after.address % _ALIGNMENT:
        raise RuntimeError(
            f"replace(): the address {after.address:#x} of new must be a multiple of {_ALIGNMENT}, as the address of "
            "old is, because the kernels of the graph may depend on that. Copy new into an array of its own."
        )
    return before.move_to(after)


__all__ = ["move_between"]
