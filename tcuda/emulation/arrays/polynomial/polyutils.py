"""Coefficients of polynomials: the functions that ``cupy.polynomial.polyutils`` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.functions import FUNCTIONS
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Iterable


def trimseq(seq: Any) -> Any:
    """Return ``seq`` without zeros at the end, but with at least one element; waits for the contents.

    Raises:
        TypeError: ``seq`` has no axis.
        ValueError: ``seq`` has more than one axis.
    """
    if seq.ndim != 1:
        raise (ValueError if seq.ndim else TypeError)(f"Input must be 1-d array, and has {seq.ndim} axes")
    trimmed = FUNCTIONS["trim_zeros"](seq, "b")
    return trimmed if trimmed.size else seq[:1]


def as_series(alist: Iterable[Any], trim: bool = True) -> list[Any]:
    """Return the arrays of ``alist`` as coefficients of one type.

    Args:
        alist: The arrays, or the rows of an array.
        trim: Whether to leave out zeros at the end, for which the function waits for the contents.

    Raises:
        ValueError: An array is empty, has more than one axis, or has bools.
    """
    arrays = []
    for array in alist:
        _require_coefficients(array)
        if array.dtype == bool:
            raise ValueError("Coefficient arrays have no common type")
        flat = FUNCTIONS["ravel"](array)
        arrays.append(trimseq(flat) if trim else flat)
    kind = FUNCTIONS["common_type"](*arrays)
    return [creation.array(array, kind, None) for array in arrays]


def trimcoef(c: Any, tol: float = 0) -> Any:
    """Return ``c`` without coefficients at the end whose size is at most ``tol``; waits for the contents.

    Raises:
        ValueError: ``tol`` is negative, or ``c`` is empty, has more than one axis, or has bools.
    """
    if tol < 0:
        raise ValueError("tol must be non-negative")
    _require_coefficients(c)
    if c.dtype == bool:
        raise ValueError("bool inputs are not allowed")
    [coefficients] = as_series([c], trim=False)
    kept = FUNCTIONS["flatnonzero"](FUNCTIONS["absolute"](coefficients) > tol)
    if not kept.size:
        return creation.zeros_like(coefficients[:1])
    return coefficients[: int(kept[-1]) + 1]


def _require_coefficients(array: Any) -> None:
    if array.size == 0:
        raise ValueError("Coefficient array is empty")
    if array.ndim > 1:
        raise ValueError(f"Coefficient array is not 1-d, but has {array.ndim} axes")


def as_degree(deg: Any) -> int:
    """Return ``deg`` as the degree of a polynomial.

    Raises:
        TypeError: ``deg`` is not an integer.
        ValueError: ``deg`` is negative.
    """
    if not isinstance(deg, (int, np.integer)):
        raise TypeError(f"deg must be an integer, received {deg}")
    if deg < 0:
        raise ValueError(f"degree must be non-negative; got {deg}")
    return int(deg)


def __dir__() -> list[str]:
    return ["as_series", "trimcoef", "trimseq"]
