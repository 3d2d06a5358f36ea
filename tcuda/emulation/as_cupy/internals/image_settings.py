"""The functions of ``cupyx.scipy.ndimage._util`` that libraries call: they check the settings of filters of images."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._base.strides import byte_bounds
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

_MODES = ["reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-wrap", "grid-reflect"]


def _same(value: Any) -> Any:
    return value


def _fix_sequence_arg(arg: Any, ndim: int, name: str, conv: Callable[[Any], Any] = _same) -> list[Any]:
    """Return a setting for each axis.

    Args:
        arg: The setting for all axes, or an iterable with a setting for each axis.
        ndim: The number of axes.
        name: The name of the setting, for the error.
        conv: Converts a setting.

    Raises:
        RuntimeError: There is another number of settings than of axes.
    """
    if isinstance(arg, str) or not np.iterable(arg):
        return [conv(arg)] * ndim
    found = [conv(item) for item in arg]
    if len(found) != ndim:
        raise RuntimeError(f"{name} must have length equal to input rank; got {len(found)} for {ndim} axes")
    return found


def _check_origin(origin: Any, width: int) -> int:
    """Return the place of the centre of a filter, which must lie in the filter.

    Raises:
        ValueError: The centre lies outside.
    """
    place = int(origin)
    if not 0 <= width // 2 + place < width:
        raise ValueError(f"invalid origin {place} of a filter with {width} elements")
    return place


def _check_mode(mode: str) -> str:
    """Return the name of a rule for places outside the image.

    Raises:
        RuntimeError: There is no such rule.
    """
    if mode not in _MODES:
        raise RuntimeError(f"boundary mode not supported (actual: {mode}); the modes are {', '.join(_MODES)}")
    return mode


def _check_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return the numbers of axes without signs; all axes for None.

    Raises:
        AxisError: There is no such axis.
        ValueError: An axis is there twice, or ``axes`` are no numbers of axes.
    """
    if axes is None:
        return tuple(range(ndim))
    given: Any = (axes,) if np.isscalar(axes) else axes
    if not np.iterable(given):
        raise ValueError(f"axes must be an integer, iterable of integers, or None; got {axes!r}")
    found = [operator.index(axis) for axis in given]
    for axis in found:
        if not -ndim <= axis < ndim:
            raise np.exceptions.AxisError(f"specified axis: {axis} is out of range")
    whole = tuple(axis % ndim for axis in found)
    if len(set(whole)) != len(whole):
        raise ValueError("axes must be unique")
    return whole


def _get_inttype(input: Strided) -> str:
    """Return the type in CUDA C++ for the places of elements of an array, in bytes."""
    begin, end = byte_bounds(0, input.itemsize, input.shape, input.strides)
    return "int" if end - begin < 2**31 else "ptrdiff_t"


def _get_output(output: Any, input: Strided, shape: Any = None, complex_output: bool = False) -> Any:
    """Return an array for the result of a filter.

    Args:
        output: The array for the result, its type, or None.
        input: The image.
        shape: The shape of the result; that of the image if None.
        complex_output: Whether the result is complex.

    Raises:
        RuntimeError: The array does not fit.
    """
    shape = input.shape if shape is None else tuple(shape)
    if isinstance(output, Strided):
        if output.shape != shape:
            raise RuntimeError("output shape not correct")
        dtype = output.dtype
    else:
        dtype = input.dtype if output is None else np.dtype(output)
    if complex_output and dtype.kind != "c":
        if isinstance(output, (str, Strided)):
            raise RuntimeError("output must have complex dtype")
        dtype = np.promote_types(dtype, np.complex64)
    return output if isinstance(output, Strided) else creation.empty(shape, dtype)


__all__ = [
    "_check_axes",
    "_check_mode",
    "_check_origin",
    "_fix_sequence_arg",
    "_get_inttype",
    "_get_output",
]
