"""The number of floating-point operations of matrix products, for the model of their time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _along_last_axis(args: Sequence[Any], result: Any) -> int:
    """Return the operations of a function whose results are sums over the last axis of the first argument."""
    return 2 * np.size(result) * (np.shape(args[0]) or (1,))[-1]


def _over_all(args: Sequence[Any], result: Any) -> int:
    return 2 * np.size(args[0])


def _pairs(args: Sequence[Any], result: Any) -> int:
    return np.size(result)


def _contraction(args: Sequence[Any], result: Any) -> int:
    """Return the operations of a contraction of two arrays.

    Arrays of the shapes (m, k) and (k, n) give an array of the shape (m, n), for any axes. So the product of the three
    sizes is (m k n) squared.
    """
    return 2 * math.isqrt(np.size(args[0]) * np.size(args[1]) * np.size(result))


def _einsum(args: Sequence[Any], result: Any) -> int:
    """Return the operations of ``einsum``.

    Each combination of the indices takes one addition, and a multiplication for each operand after the first.
    """
    if not isinstance(args[0], str):
        return 2 * max(np.size(arg) for arg in args)
    terms = args[0].replace(" ", "").partition("->")[0].split(",")
    lengths: dict[str, int] = {}
    for term, operand in zip(terms, args[1:], strict=True):
        before, _, after = term.partition("...")
        shape = np.shape(operand)
        lengths.update(zip(before, shape, strict=False))
        lengths.update(zip(reversed(after), reversed(shape), strict=False))
    return len(terms) * math.prod(lengths.values())


ESTIMATES: dict[Any, Callable[[Sequence[Any], Any], int]] = {
    np.dot: _along_last_axis,
    np.einsum: _einsum,
    np.inner: _along_last_axis,
    np.kron: _pairs,
    np.matmul: _along_last_axis,
    np.outer: _pairs,
    np.tensordot: _contraction,
    np.vdot: _over_all,
}
"""The estimates for NumPy functions that multiply matrices. They take the positional arguments and the result."""
