"""The functions of ``cupy._core._scalar`` that libraries call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcuda.emulation.kernels.parts.type_names import type_name

if TYPE_CHECKING:
    import numpy.typing as npt


def get_typename(dtype: npt.DTypeLike) -> str:
    """Return the name of a type in CUDA C++.

    Raises:
        ValueError: CUDA C++ has no such type.
    """
    return type_name(np.dtype(dtype))


__all__ = ["get_typename"]
