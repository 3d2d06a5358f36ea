"""The reciprocal square root (``cupyx.rsqrt``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation import numpy_work
from tcuda.emulation.ufunc import require_operands

if TYPE_CHECKING:
    import numpy.typing as npt


def rsqrt(x: Any, /, out: Any = None) -> Any:
    """Return the reciprocal of the square root of each element.

    Args:
        x: An array of the device, or a scalar.
        out: The array for the result; a new array if None.
    """
    require_operands([x])
    if out is None:
        return numpy_work.call(_rsqrt, (x,))
    result = numpy_work.call(_rsqrt, (x,))
    numpy_work.modify(np.copyto, (out, result), {"casting": "same_kind"})
    return out


def _rsqrt(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    root: npt.NDArray[Any] = np.reciprocal(np.sqrt(x))
    return root
