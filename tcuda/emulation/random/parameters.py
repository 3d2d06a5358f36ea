"""The parameters of distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tcuda.emulation.devices.operands import SCALARS
from tcuda.emulation.work import copies, creation, refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcuda.emulation.arrays.ndarray import ndarray

    Shape = int | Sequence[int] | None


_REAL = np.dtype(float)


def operand(parameter: Any) -> Any:
    """Return ``parameter`` as an array of the device; a scalar is returned unchanged."""
    return parameter if isinstance(parameter, SCALARS) else creation.asarray(parameter)


def whole(end: Any) -> ndarray:
    """Return ``end``, one end of a range of integers, modulo 2**64.

    Raises:
        ValueError: ``end`` is not an integer.
    """
    array: Any = creation.asarray(end)
    if array.dtype.kind not in "iu":
        raise ValueError(f"dtype must be integer, got: {array.dtype}")
    return cast("ndarray", array.astype(np.uint64))


def shape_of(size: Shape, *parameters: Any) -> Shape:
    """Return ``size``, or the shape to which the parameters broadcast if ``size`` is None.

    Raises:
        TypeError: A parameter is complex.
        ValueError: The parameters do not broadcast to ``size``, or not to one shape.
    """
    shapes = []
    for parameter in parameters:
        if isinstance(parameter, (complex, np.complexfloating)) or getattr(parameter, "dtype", _REAL).kind == "c":
            raise TypeError("The parameters of a distribution must be real numbers.")
        shapes.append(np.shape(parameter))
    if size is None:
        return np.broadcast_shapes(*shapes)
    if any(shapes) and not _fit(shapes, axes(size)):
        raise ValueError(
            f"The parameters have the shapes {', '.join(map(str, shapes))}, which do not broadcast to the size {size}."
        )
    return size


def _fit(shapes: Iterable[tuple[int, ...]], size: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(size, *shapes) == size
    except ValueError:
        return False


def axes(size: Shape) -> tuple[int, ...]:
    """Return ``size`` as a tuple, without axes if ``size`` is None."""
    return () if size is None else (int(size),) if isinstance(size, (int, np.integer)) else tuple(size)


def refuse_if(wrong: Any, message: str) -> None:
    """Refuse parameters that are out of range; wait for the device, as CuPy does.

    Args:
        wrong: Whether each parameter is out of range.
        message: The message of the error.

    Raises:
        ValueError: A parameter is out of range.
        RuntimeError: The current stream captures.
    """
    refusals.require_download()
    if isinstance(wrong, (bool, np.bool_)):
        copies.wait_for_contents("a draw of random numbers")
    else:
        wrong = bool(wrong.any())
    if wrong:
        raise ValueError(message)


def probabilities(p: Any, count: int) -> Any:
    """Return the probabilities of ``count`` items as an array of the device; wait for the device, as CuPy does.

    Raises:
        ValueError: The probabilities are negative, do not have the sum 1, or are not one for each item.
    """
    p = creation.asarray(p)
    if p.ndim != 1:
        raise ValueError("p must be 1-dimensional")
    if len(p) != count:
        raise ValueError("a and p must have same size")
    if not bool((p >= 0).all()):
        raise ValueError("probabilities are not non-negative")
    if not np.allclose(p.sum().get(), 1):
        raise ValueError("probabilities do not sum to 1")
    return p
