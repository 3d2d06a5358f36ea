"""The names of NumPy's types in CUDA C++."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_NAMES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "thrust::complex<float>",
    "complex128": "thrust::complex<double>",
}


def type_name(dtype: np.dtype[np.generic]) -> str:
    """Return the name of ``dtype`` in CUDA C++.

    Raises:
        ValueError: CUDA C++ has no such type.
    """
    name = _NAMES.get(dtype.name)
    if name is None:
        raise ValueError(f"Unsupported dtype {dtype}; a kernel takes {', '.join(_NAMES)}")
    return name
