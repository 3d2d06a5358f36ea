"""Functions under names that are old in CuPy, and that SciPy does not have any more."""

from __future__ import annotations

import sys
import warnings
from typing import Any

OF_ARRAYS = ("btdtr", "btdtri", "sph_harm")


def _new(name: str, old: str) -> Any:
    """Return the function ``name``, and warn of the name ``old``."""
    text = f"`cupyx.scipy.special.{old}` is deprecated in CuPy v14. Use `cupyx.scipy.special.{name}`."
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return getattr(sys.modules["tcuda.emulation.cupyx.scipy.special"], name)


def btdtr(a: Any, b: Any, x: Any, out: Any = None) -> Any:
    """Return the distribution function of a beta distribution."""
    return _new("betainc", "btdtr")(a, b, x, out=out)


def btdtri(a: Any, b: Any, p: Any, out: Any = None) -> Any:
    """Return the quantile of a beta distribution."""
    return _new("betaincinv", "btdtri")(a, b, p, out=out)


def sph_harm(m: Any, n: Any, theta: Any, phi: Any, out: Any = None) -> Any:
    """Return a spherical harmonic; ``theta`` is the angle around the axis, and ``phi`` the angle with the axis."""
    made = _new("sph_harm_y", "sph_harm")(n, m, phi, theta)
    if out is None:
        return made
    out[...] = made
    return out
