"""The reciprocal square root (``cupyx.rsqrt``)."""

from __future__ import annotations

from typing import Any

from tcuda.emulation.arrays.functions import FUNCTIONS


def rsqrt(x: Any, /, out: Any = None) -> Any:
    """Return the reciprocal of the square root of each element.

    Args:
        x: An array of the device, or a scalar.
        out: The array for the result; a new array if None.
    """
    return FUNCTIONS["reciprocal"](FUNCTIONS["sqrt"](x), out)
