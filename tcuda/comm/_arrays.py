"""Array arguments of the functions over several devices: kinds of arrays, layouts, and texts for messages."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tcuda._base.arguments import a_kind
from tcuda._device import device
from tcuda._process.lazy import backend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HOST = -1
"""The index that stands for the host in place of a device."""


def place_of(array: Any, name: str) -> int:
    """Return the index of the device of ``array``, :data:`HOST` for a NumPy array.

    Args:
        array: The argument.
        name: The name of the argument in the error.

    Raises:
        TypeError: ``array`` is neither an array of the array library nor a NumPy array.
    """
    transfers = backend.transfers()
    if isinstance(array, transfers.array):
        return int(array.data.device_id)
    import numpy as np  # here, because `import tcuda` imports no NumPy

    if isinstance(array, np.ndarray):
        return HOST
    raise TypeError(
        f"{name} must be an array of {transfers.xp.__name__.partition('.')[0]} or numpy; got {a_kind(array)}."
    )


def place_of_output(array: Any, number: int) -> int:
    """Return the index of the device of ``array``, the element ``number`` of the argument ``out``.

    Raises:
        RuntimeError: ``array`` is a NumPy array.
        TypeError: ``array`` is neither an array of the array library nor a NumPy array.
    """
    place = place_of(array, f"out[{number}]")
    if place == HOST:
        raise RuntimeError(
            f"Expected all output tensors to be CUDA tensors, but output tensor at index {number} has device "
            f"'{place_text(place)}'"
        )
    return place


def place_text(place: int) -> str:
    """Return ``"cpu"`` or ``"cuda:1"`` for a message."""
    return "cpu" if place == HOST else f"cuda:{place}"


def shape_text(shape: Iterable[int]) -> str:
    """Return a shape in torch's spelling for a message, such as ``"[3, 4]"``."""
    return str(list(shape))


def arrays_text(arrays: Any) -> str:
    """Return a text for ``arrays`` in a message.

    The text has no elements, because a read of the elements would wait for the device.
    """
    try:
        items = list(arrays)
    except TypeError:
        return _array_text(arrays)
    return f"[{', '.join(map(_array_text, items))}]"


def _array_text(array: Any) -> str:
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    return repr(array) if shape is None or dtype is None else f"{dtype}{shape_text(shape)}"


def axis_of(dim: int, ndim: int) -> int:
    """Return the axis that ``dim`` means, counted from 0; an array without axes counts as an array with one.

    Raises:
        IndexError: ``dim`` is out of range.
        TypeError: ``dim`` is not an integer.
    """
    try:
        dim = operator.index(dim)
    except TypeError:
        raise TypeError(f"dim must be an integer; got {a_kind(dim)}.") from None
    axes = max(ndim, 1)
    if not -axes <= dim < axes:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-axes}, {axes - 1}], but got {dim})")
    return dim % axes


def part_of(array: Any, axis: int, begin: int, end: int) -> Any:
    """Return the view of ``array`` from ``begin`` to ``end`` along ``axis``."""
    return array[(slice(None),) * axis + (slice(begin, end),)]


def contiguous(array: Any) -> Any:
    """Return ``array`` in C order; a copy is made on the device of ``array``, by its current stream."""
    if array.flags.c_contiguous:
        return array
    with device(array.data.device_id):
        return array.copy(order="C")


def axes_in_memory(array: Any) -> tuple[int, ...] | None:
    """Return the axes of ``array`` from the longest stride to the shortest; None if this is the order of the axes."""
    strides: Sequence[int] = array.strides
    axes = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
    return None if axes == list(range(len(strides))) else tuple(axes)


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes that undo ``transpose(axes)``."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def empty_like(array: Any, index: int) -> Any:
    """Return a new array on the device ``index`` without gaps, whose axes have the order of those of ``array``."""
    transfers, dtype = backend.transfers(), array.dtype.newbyteorder("=")
    axes = None if array.flags.c_contiguous else axes_in_memory(array)
    if axes is None:
        return transfers.empty(array.shape, dtype, index)
    return transfers.empty([array.shape[axis] for axis in axes], dtype, index).transpose(inverse(axes))
