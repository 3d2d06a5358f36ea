"""Arithmetic of a GPU: functions of each element for which kernels of CuPy give other numbers than NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


def power(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
    """Return powers. A negative power of an integer is cut to an integer: 0, 1 or -1.

    NumPy refuses negative powers of integers. The power of 0 is 0, because CuPy multiplies and divides nothing.
    """
    exponent = np.asarray(x2)
    if exponent.dtype.kind != "i" or _is_inexact(x1, out, options) or not (exponent < 0).any():
        return np.power(x1, x2, out=out, **options)
    if type(x2) is int:  # the array alone decides the type, and must be able to hold the exponent
        exponent = np.asarray(x2, np.result_type(x1, x2))
    negative = exponent < 0
    # Only 1 and -1 have inverses among the integers. The exponent 1 or 2 gives these, and 0, the sign of the power.
    base = np.where(negative & (np.abs(x1) != 1), 0, x1)
    return np.power(base, np.where(negative, 2 - (exponent & 1), exponent), out=out, **options)


def _is_inexact(base: Any, out: Any, options: dict[str, Any]) -> bool:
    kinds = [np.asarray(base).dtype.kind]
    if options.get("dtype") is not None:
        kinds.append(np.dtype(options["dtype"]).kind)
    elif out is not None and kinds == ["u"]:  # of signed exponents, unless the type of 64 bits makes floats of both
        target = out[0] if isinstance(out, tuple) else out
        kinds.append("i" if target is None else target.dtype.kind)
    return not {"f", "c"}.isdisjoint(kinds)


def floor_divide(x1: Any, x2: Any, out: Any = None, **options: Any) -> Any:
    """Return the quotients, rounded down. NumPy subtracts a remainder first, which gives NaN for an infinity."""
    kind = np.result_type(x1, x2) if options.get("dtype") is None else np.dtype(options["dtype"])
    if kind.kind != "f":
        return np.floor_divide(x1, x2, out=out, **options)
    # Kernels compute with elements of half precision in single precision.
    options["dtype"] = np.promote_types(kind, np.float32)
    options.setdefault("casting", "same_kind")
    quotient = np.floor(np.true_divide(x1, x2, **options))
    if out is None:
        return quotient.astype(kind)[()]
    target = out[0] if isinstance(out, tuple) else out
    return np.positive(quotient, out=target, casting=options["casting"])


def expm1(x: Any, out: Any = None, **options: Any) -> Any:
    """Return exponentials less 1. For complex numbers, the exponential is rounded first, as by CuPy's headers."""
    kind = np.asarray(x).dtype if options.get("dtype") is None else np.dtype(options["dtype"])
    if kind.kind != "c":
        return np.expm1(x, out=out, **options)
    return np.subtract(np.exp(x, **options), kind.type(1), out=out)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None) -> Any:
    """Return elements between bounds. A comparison with NaN is false, so a bound that is NaN bounds nothing.

    Raises:
        TypeError: The elements are complex numbers, and there is no bound.
    """
    if a_min is None and a_max is None and np.asarray(a).dtype.kind == "c":
        raise TypeError("clip() takes complex numbers with a bound only: give a_min or a_max.")
    lowest = -np.inf if a_min is None else a_min
    highest = np.inf if a_max is None else a_max
    if np.asarray(a).dtype.kind != "f" or (a_min is None and a_max is None) or np.all(lowest <= highest):
        return np.clip(a, a_min, a_max, out=out)
    clipped = np.clip(a, a_min, a_max)
    chosen = np.where(lowest > highest, highest, np.where(a < lowest, lowest, np.where(a > highest, highest, a)))
    return np.positive(chosen.astype(clipped.dtype), out=out, casting="same_kind")


def wrapped(indices: Any, length: int) -> Any:
    """Return indices from 0 to ``length - 1``, if ``length`` is not 0, as the mode ``"wrap"`` means them.

    NumPy adds or subtracts ``length`` until an index fits, so that a large index takes years.
    """
    return np.remainder(indices, length) if length else indices


_IN_PLACE_OF: dict[Any, Callable[..., Any]] = {
    np.expm1: expm1,
    np.floor_divide: floor_divide,
    np.power: power,
}


def of_device(function: np.ufunc) -> Callable[..., Any]:
    """Return the function that computes what kernels compute for the universal function ``function``."""
    return _IN_PLACE_OF.get(function, function)
