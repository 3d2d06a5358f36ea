"""The names of NumPy's types in CUDA C++."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda.emulation.numbers import structured

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
        ValueError: CUDA C++ has no such type, or the fields of a structure are not where a kernel needs them.
    """
    name = _NAMES.get(dtype.name)
    if name is None and dtype.fields:
        alignment = structured.require_layout(dtype)
        placed = [dtype.fields[name] for name in dtype.names or ()]
        fields = [f"cupy::Field<{type_name(kind)}, {offset}>" for kind, offset, *_ in placed]
        storage = f"cupy::raw_structview_storage<{dtype.itemsize}, {alignment}>"
        return f"cupy::StructView<{storage}, {', '.join(fields)}>"
    if name is None:
        raise ValueError(f"Unsupported dtype {dtype}; a kernel takes {', '.join(_NAMES)}")
    return name
