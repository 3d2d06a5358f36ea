"""Views of arrays that a kernel takes as ``cuda::std::mdspan``."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tcuda.emulation.devices.strided import Strided

_CODES: dict[Any, str] = {np.int32: "i", np.int64: "q"}
"""The characters of :mod:`struct` for the types of indices."""
_MOST_32 = 2**31 - 1


class MdSpan:
    """An array as an argument of a kernel with a parameter of the type ``cuda::std::mdspan``.

    Args:
        array: The array.
        index_type: The type of the lengths and strides, ``int32`` or ``int64``.
        allow_unsafe: Whether axes may have the length 0, or strides that are not positive.

    Attributes:
        array: The array.
        content: The bytes of the argument: the address, the lengths, and the strides in elements.

    Raises:
        ValueError: ``index_type`` is another type, or does not hold the size of the array.
        RuntimeError: An axis has the length 0, or a stride that is not positive, and ``allow_unsafe`` is false.
    """

    __slots__ = ("array", "content")

    def __init__(self, array: Strided, index_type: Any, allow_unsafe: bool) -> None:
        code = _CODES.get(index_type)
        if code is None:
            raise ValueError(f"Unsupported index_type: {index_type}. Must be cupy.int32 or cupy.int64.")
        if code == "i" and array.size > _MOST_32:
            raise ValueError(
                f"Array size {array.size} exceeds int32 maximum ({_MOST_32}). Use index_type=cupy.int64 instead."
            )
        if not allow_unsafe:
            for axis, length in enumerate(array.shape):
                if not length:
                    raise RuntimeError(f"{axis}-th dimension has size zero")
            for axis, step in enumerate(array.strides):
                if step <= 0:
                    raise RuntimeError(f"{axis}-th dimension has non-positive stride")
        steps = [step // array.itemsize for step in array.strides]
        self.array = array
        self.content = struct.pack(f"=Q{2 * array.ndim}{code}", array.data.ptr, *array.shape, *steps)
