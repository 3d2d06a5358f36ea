"""Functions of linear algebra that cuSOLVER computes on a GPU: what they do with a matrix that has no solution."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.numbers import error_state, linear_algebra
from tcuda.emulation.work import copies, numpy_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_UNCHECKED = frozenset(["det", "matrix_power", "norm", "slogdet"])
"""The functions that do not always look at the status of cuSOLVER."""


def work_of(function: Callable[..., Any]) -> Callable[[Sequence[Any], Mapping[str, Any]], Any]:
    """Return the work of ``function``, a function of ``numpy.linalg``.

    CuPy looks at the status of cuSOLVER only if the program asks for errors (``cupyx.errstate(linalg="raise")``),
    because the host has to wait for the status.
    """
    quiet = _without_errors(function)
    name = function.__name__.strip("_")

    def solve(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if error_state.geterr()["linalg"] == "ignore":
            return numpy_work.call(quiet, args, kwargs)
        result = numpy_work.call(function, args, kwargs)
        if name not in _UNCHECKED:
            copies.wait_for_contents(f"linalg.{name}")
        return result

    return solve


def _without_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` without errors of linear algebra, which leave NaN or infinities in the results."""

    @functools.wraps(function)
    def compute(a: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with linear_algebra.unchecked():
                return function(a, *args, **kwargs)
        except np.linalg.LinAlgError:
            # Matrices of any other shapes give the same error again.
            return _as_nan(function(_regular(a), *args, **kwargs))

    return compute


def _regular(a: Any) -> Any:
    """Return identity matrices in the shape of ``a``."""
    if a.ndim < 2:
        return a
    return np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape)


def _as_nan(result: Any) -> Any:
    """Return ``result``, an array or a tuple of arrays, with NaN in the places of all fractions."""
    if isinstance(result, tuple):
        parts = [_as_nan(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return np.full_like(result, np.nan) if np.asarray(result).dtype.kind in "fc" else result
