"""The scalars that a call gives by keyword."""

from __future__ import annotations

import numbers
from typing import Any

LONG, DOUBLE, TRUTH, COMPLEX = range(4)
"""The kinds of scalars. The core uses the same numbers."""

C_TYPES = ("long long", "double", "bool", "complex<double>")
"""The type of the parameter for each kind."""

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def kind_and_value(name: str, value: Any) -> tuple[int, Any]:
    """Return the kind of the keyword argument ``value`` and its Python scalar.

    Raises:
        TypeError: ``value`` is no number.
        RuntimeError: ``value`` is an integer that 64 bits cannot hold.
    """
    kind = _KINDS.get(type(value))
    if kind is None:
        if getattr(value, "shape", None) == () and hasattr(value, "item"):
            return kind_and_value(name, value.item())  # a scalar of NumPy, or an array without axes
        kind, value = _converted(name, value)
    if kind == LONG and not _LOWEST <= value <= _HIGHEST:
        raise RuntimeError(f"{name}={value} does not fit in an integer of 64 bits")
    return kind, value


def _converted(name: str, value: Any) -> tuple[int, Any]:
    if isinstance(value, numbers.Integral):
        return LONG, int(value)
    if isinstance(value, numbers.Real):
        return DOUBLE, float(value)
    if isinstance(value, numbers.Complex):
        return COMPLEX, complex(value)
    raise TypeError(f"{name} must be a number (bool, int, float or complex), not {type(value).__name__}")


_KINDS: dict[type, int] = {int: LONG, float: DOUBLE, bool: TRUTH, complex: COMPLEX}
