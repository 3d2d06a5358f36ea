"""The functions of ``cupy._core._routines_indexing`` that libraries call."""

from __future__ import annotations

from tcuda.emulation.arrays.functions import FUNCTIONS

_ndarray_argwhere = FUNCTIONS["argwhere"]

__all__ = ["_ndarray_argwhere"]
