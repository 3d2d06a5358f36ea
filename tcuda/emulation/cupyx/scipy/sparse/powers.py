"""Powers of sparse matrices."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def power_of(matrix: Any, power: Any, identity: Callable[[], Any]) -> Any:
    """Return the product of a square matrix with itself, ``power`` times.

    Args:
        matrix: The matrix.
        power: The number of factors, which is not negative.
        identity: Returns the product of no factors.

    Raises:
        TypeError: The matrix is not square.
        ValueError: The power is no integer, or is negative.
    """
    if matrix.shape[0] != matrix.shape[1]:
        raise TypeError("sparse matrix is not square")
    try:
        exponent = operator.index(power)
    except TypeError:
        raise ValueError("exponent must be an integer") from None
    if exponent < 0:
        raise ValueError("exponent must be >= 0")
    if exponent == 0:
        return identity()
    if exponent == 1:
        return matrix.copy()
    half = power_of(matrix, exponent // 2, identity)
    return matrix @ half @ half if exponent % 2 else half @ half
