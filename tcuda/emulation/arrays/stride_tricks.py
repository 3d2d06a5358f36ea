"""Views of arrays with other shapes and strides: the functions that ``cupy.lib.stride_tricks`` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.devices.strided import Strided, as_plain
from tcuda.emulation.work import creation, numpy_work

if TYPE_CHECKING:
    from collections.abc import Sequence


def as_strided(x: Any, shape: Sequence[int] | None = None, strides: Sequence[int] | None = None) -> Any:
    """Return an array over the memory of ``x``, from its first element on.

    Args:
        x: The array.
        shape: The lengths of the axes; those of ``x`` if None.
        strides: The bytes from one element to the next along each axis; those of ``x`` if None.

    Raises:
        ValueError: The array does not fit in the memory of ``x``. CuPy does not check this.
    """
    lengths = x.shape if shape is None else tuple(shape)
    steps = x.strides if strides is None else tuple(strides)
    return Strided.array_type(lengths, x.dtype, x.data, steps)


def sliding_window_view(
    x: Any,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Any:
    """Return a view with all windows into ``x`` of a shape.

    CuPy copies the shape to the device to check it, and waits for the result.

    Args:
        x: The array.
        window_shape: The lengths of a window along the axes ``axis``.
        axis: The axes; all axes if None.
        subok: Must be false.
        writeable: Must be false.

    Raises:
        NotImplementedError: ``subok`` or ``writeable`` is true.
        ValueError: A window has a negative length, is longer than the array, or has another number of axes.
    """
    if writeable:
        raise NotImplementedError("Writeable views are not supported.")
    array = creation.array(x, copy=None, subok=subok)
    window: list[int] = np.atleast_1d(window_shape).tolist()
    lengths: Any = creation.asarray(tuple(window))
    if (lengths < 0).any():
        raise ValueError("`window_shape` cannot contain negative values")
    return numpy_work.view(np.lib.stride_tricks.sliding_window_view, (as_plain(array), tuple(window), axis))
