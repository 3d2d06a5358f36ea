"""Scalars among the arguments of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

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
