"""The arguments of a call of a kernel, as CuPy checks them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.devices import array_interface
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.kernels.parts.array_layouts import Layout, broadcast, broadcast_shape, layout_of
from tcuda.emulation.work import numpy_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.kernels.parts.parameters import Parameter

_PYTHON = (bool, int, float, complex)


class Scalar:
    """A scalar that a call passes, which the kernel takes with the type of its parameter.

    Args:
        value: The scalar.

    Attributes:
        dtype: The type of the scalar itself.

    Raises:
        TypeError: ``value`` is neither a Python number nor a scalar of NumPy.
        OverflowError: ``value`` is an integer of more than 64 bits.
    """

    __slots__ = ("dtype", "value")

    def __init__(self, value: Any) -> None:
        if type(value) not in _PYTHON and not isinstance(value, np.generic):
            raise TypeError(
                f"Unsupported type {type(value)}: a kernel takes arrays of the device and scalars. Make an array of "
                "the device with asarray() first."
            )
        self.value = value
        self.dtype: np.dtype[Any]
        if type(value) is int:
            self.dtype = np.dtype(np.uint64 if value >= 2**63 else np.int64)
            self.typed(self.dtype)
        else:
            self.dtype = np.dtype(type(value)) if type(value) in _PYTHON else value.dtype

    def typed(self, dtype: np.dtype[Any]) -> Any:
        """Return the scalar as ``dtype``.

        Raises:
            OverflowError: ``dtype`` does not hold the integer.
        """
        typed = np.empty((), dtype)
        typed[()] = self.value
        return typed[()]


Operand = Strided | Scalar


def operands_of(args: Sequence[Any]) -> list[Operand]:
    """Return the arguments, which must be arrays of the current device and scalars.

    Raises:
        TypeError: An argument is neither an array of a device nor a scalar.
        ValueError: An array is not on the current device.
        OverflowError: An argument is an integer of more than 64 bits.
    """
    given = [array_interface.array_of(arg) for arg in args]
    numpy_work.require_current_device(array for array in given if array is not None)
    return [Scalar(arg) if array is None else array for arg, array in zip(args, given, strict=True)]


def shape_of(operands: Sequence[Operand], params: Sequence[Parameter], size: int | None) -> tuple[int, ...]:
    """Return the shape of the loop: the shape of all arrays that are not raw, when broadcast, or ``size``.

    Raises:
        ValueError: The shapes do not fit together, or ``size`` is missing, or ``size`` is given beside such arrays.
    """
    shapes = [
        operand.shape
        for operand, parameter in zip(operands, params, strict=False)
        if isinstance(operand, Strided) and not parameter.raw
    ]
    if size is not None:
        if shapes:
            raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
        if size < 0:
            raise ValueError(f"size must not be negative; got {size}")
        return (size,)
    if not shapes:
        raise ValueError("Loop size is undecided. Pass size=, or an array for a parameter that is not raw.")
    return broadcast_shape(shapes)


def dtype_of(operand: Operand) -> np.dtype[Any] | None:
    """Return the type of an array; None for a scalar, which does not decide on types."""
    return operand.dtype if isinstance(operand, Strided) else None


def outputs_of(
    given: Sequence[Operand],
    params: Sequence[Parameter],
    dtypes: Sequence[np.dtype[Any]],
    shape: tuple[int, ...],
    sized: bool,
) -> tuple[list[Strided], list[Strided]]:
    """Return the outputs, and those of them that are new.

    Args:
        given: The outputs that the call passes; empty if there are none.
        params: The parameters of the outputs.
        dtypes: The types of the outputs.
        shape: The shape of the outputs.
        sized: Whether the call passes a size, which new raw outputs need.

    Raises:
        TypeError: A given output is no array.
        ValueError: A given output has another shape, or the size of a new raw output is not known.
    """
    if not given:
        if not sized and any(parameter.raw for parameter in params):
            raise ValueError("Output array size is Undecided. Pass the outputs, or size=.")
        fresh = numpy_work.new_each([(shape, dtype, "C") for dtype in dtypes])
        return fresh, fresh
    outputs = []
    for output, parameter in zip(given, params, strict=True):
        if not isinstance(output, Strided):
            raise TypeError("Output arguments type must be an array of the device")
        if not parameter.raw and output.shape != shape:
            raise ValueError(f"Out shape is mismatched: the output has shape {output.shape}, the loop {shape}")
        outputs.append(output)
    return outputs, []


def typed_of(
    operands: Sequence[Operand], params: Sequence[Parameter], dtypes: Sequence[np.dtype[Any]], shape: tuple[int, ...]
) -> list[Layout | np.generic]:
    """Return the arguments of the kernel: layouts of the arrays, and scalars with the types of their parameters.

    Raises:
        OverflowError: The type of a parameter does not hold the integer.
    """
    typed: list[Layout | np.generic] = []
    for operand, parameter, dtype in zip(operands, params, dtypes, strict=True):
        if isinstance(operand, Scalar):
            typed.append(operand.typed(dtype))
        else:
            typed.append(layout_of(operand) if parameter.raw else broadcast(operand, shape))
    return typed


def is_empty(shape: tuple[int, ...]) -> bool:
    """Return whether a loop over ``shape`` has no elements."""
    return math.prod(shape) == 0
