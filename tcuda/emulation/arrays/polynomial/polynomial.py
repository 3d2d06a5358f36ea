"""Values and matrices of polynomials: the functions that ``cupy.polynomial.polynomial`` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.polynomial import polyutils
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation, numpy_work

if TYPE_CHECKING:
    import numpy.typing as npt


def polyvander(x: Any, deg: int) -> Any:
    """Return the powers of ``x`` from 0 to ``deg``, along a new last axis.

    Raises:
        TypeError: ``deg`` is not an integer.
        ValueError: ``deg`` is negative.
    """
    degree = polyutils.as_degree(deg)
    return numpy_work.call(_powers, (x, degree))


def _powers(x: npt.NDArray[Any], degree: int) -> npt.NDArray[Any]:
    kind = np.dtype(float) if x.dtype.kind in "biu" else x.dtype
    values = np.polynomial.polynomial.polyvander(x, degree).astype(kind)
    return values if x.ndim else values.reshape(1, -1)


def polycompanion(c: Any) -> Any:
    """Return the companion matrix of the polynomial with the coefficients ``c``; waits for the contents.

    Raises:
        ValueError: The polynomial is constant, or ``c`` has no coefficients.
    """
    [coefficients] = polyutils.as_series([c])
    if coefficients.size == 1:
        raise ValueError("Series must have maximum degree of at least 1.")
    return numpy_work.call(_companion, (coefficients,))


def _companion(c: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the companion matrix of coefficients without zeros at the end; the shape depends on their number only."""
    matrix = np.eye(len(c) - 1, k=-1, dtype=c.dtype)
    matrix[:, -1] -= c[:-1] / c[-1]
    return matrix


def polyval(x: Any, c: Any, tensor: bool = True) -> Any:
    """Return the values at ``x`` of the polynomial with the coefficients ``c``.

    Args:
        x: The array or the scalar.
        c: The coefficients along the first axis; other axes are of other polynomials.
        tensor: Whether to evaluate each polynomial at each element of ``x``.
    """
    return numpy_work.call(np.polynomial.polynomial.polyval, (_points(x), creation.array(c, copy=None), tensor))


def polyvalfromroots(x: Any, r: Any, tensor: bool = True) -> Any:
    """Return the values at ``x`` of the polynomial with the roots ``r``.

    Args:
        x: The array or the scalar.
        r: The roots along the first axis; other axes are of other polynomials.
        tensor: Whether to evaluate each polynomial at each element of ``x``.

    Raises:
        ValueError: ``x`` has as many axes as ``r``, and ``tensor`` is false.
    """
    roots = creation.array(r, copy=None)
    return numpy_work.call(np.polynomial.polynomial.polyvalfromroots, (_points(x), roots, tensor))


def _points(x: Any) -> Any:
    return creation.asarray(x) if isinstance(x, (Strided, tuple, list)) else x


def __dir__() -> list[str]:
    return ["polycompanion", "polyval", "polyvalfromroots", "polyvander"]
