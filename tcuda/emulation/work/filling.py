"""Filling of arrays with a scalar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.devices import array_interface
from tcuda.emulation.numbers import casts, structured
from tcuda.emulation.work import numpy_work

if TYPE_CHECKING:
    import numpy.typing as npt

    from tcuda.emulation.devices.strided import Strided


def fill(array: Strided, value: Any) -> None:
    """Set all elements of ``array`` to ``value``, a scalar or an array without axes.

    Raises:
        ValueError: ``value`` has an axis.
    """
    given = array_interface.array_of(value)
    if given is not None:
        value = given
        if value.shape != ():
            raise ValueError("non-scalar array of a device cannot be used for fill")
    else:
        value = scalar(value, array.dtype)
    if structured.is_structured(array.dtype):
        structured.require_layout(array.dtype)
    numpy_work.modify(_fill, (array, value))


def scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``value``, a Python or NumPy scalar, as a scalar of ``dtype``.

    Raises:
        ValueError: ``value`` has an axis.
    """
    converted = np.asarray(value, dtype=dtype)
    if converted.shape != ():
        raise ValueError(
            "non-scalar numpy.ndarray cannot be used for fill; make an array of the device of it with asarray(), or "
            "use set()"
        )
    return converted[()]


def _fill(a: npt.NDArray[Any], value: Any) -> None:
    casts.copyto(a, value, "unsafe")
