"""Polynomials by their coefficients, from the constant term on: the modules that ``cupy.polynomial`` has."""

from __future__ import annotations

from tcuda.emulation.arrays.polynomial import polynomial as polynomial
from tcuda.emulation.arrays.polynomial import polyutils as polyutils


def __dir__() -> list[str]:
    return ["polynomial", "polyutils"]
