"""The source of the kernels of ``transfers.cuh``. This module does not import CuPy."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

import numpy

from tcuda._core import pack_capacities

SMALL_PACK, LARGE_PACK, ADDITION = range(3)
"""The kinds of kernels, as the core names them."""

_HEADERS = {
    "float16": "#define TCUDA_HALF\n#include <cuda_fp16.h>\n",
    "bfloat16": "#define TCUDA_BFLOAT16\n#include <cuda_bf16.h>\n",
}
_NUMBERS = {
    "bool": "Bool",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "Complex<float>",
    "complex128": "Complex<double>",
}
_INTEGERS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
"""The types of integers by their bytes: sums that wrap have the same bits with a sign and without."""


def expression(kind: int, dtype: Any, count: int) -> tuple[str, str] | None:
    """Return the source of a kernel and the name of the kernel; None if no kernel adds elements of the dtype."""
    if kind != ADDITION:
        return source(), f"pack<{pack_capacities[kind]}>"
    dtype = numpy.dtype(dtype)
    number = _INTEGERS.get(dtype.itemsize) if dtype.kind in "iu" else _NUMBERS.get(dtype.name)
    if number is None or not dtype.isnative:
        return None
    return _HEADERS.get(dtype.name, "") + source(), f"add<{number}, {count}>"


@functools.cache
def source() -> str:
    """Return the source of all kernels."""
    return (importlib.resources.files("tcuda._cupy") / "transfers.cuh").read_text(encoding="utf-8")
