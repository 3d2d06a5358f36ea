"""Types for annotations (``cupy.typing``)."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import DTypeLike as DTypeLike

from tcuda.emulation.arrays.ndarray import ndarray

_Scalar = TypeVar("_Scalar", bound=np.generic, covariant=True)
NDArray = ndarray[Any, np.dtype[_Scalar]]  # type: ignore[type-arg]
"""An array with elements of a type: ``NDArray[numpy.float32]``."""


def __getattr__(name: str) -> Any:
    if name == "NBitBase":  # newer versions of NumPy give a warning to whoever asks for the name
        return numpy.typing.NBitBase
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["ArrayLike", "DTypeLike", "NBitBase", "NDArray"]
