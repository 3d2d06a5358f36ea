"""The kernels of ``philox.cuh``, compiled when they are first needed."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

import cupy
import numpy as np

from tcuda import _core
from tcuda._cupy import loaded_kernels
from tcuda._process.lazy import cuda
from tcuda.random._philox import most_blocks

_TYPES = {
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}
_NUMBERS = {
    ("uniform", 4): "Uniforms",
    ("uniform", 8): "DoubleUniforms",
    ("normal", 4): "Normals",
    ("normal", 8): "DoubleNormals",
    ("words", 4): "Words",
    ("words", 8): "LongWords",
}


@functools.cache
def real(numbers: str, rule: str, char: str, device: int, *, captured: bool = False) -> _core.FillKernel:
    """Return the kernel that fills an array with random real numbers.

    Args:
        numbers: The distribution of the numbers, ``"uniform"`` or ``"normal"``.
        rule: The function of each number and two doubles: ``"Between"``, ``"Scaled"`` or ``"Exponential"``.
        char: The type of the array, ``"f"`` or ``"d"``.
        device: The device, which is current.
        captured: Whether the kernel is for graphs.
    """
    kind = np.dtype(char)
    name = _TYPES[kind.name]
    code = f"{_function(captured)}<{name}, {_NUMBERS[numbers, kind.itemsize]}, {rule}<{name}>>"
    return _compiled(code, kind.itemsize, 16 // kind.itemsize, device)


@functools.cache
def integer(bits: int, char: str, device: int, *, captured: bool = False) -> _core.FillKernel:
    """Return the kernel that fills an array with random integers.

    Args:
        bits: The number of random bits for each integer, 32 or 64.
        char: The type of the array.
        device: The device, which is current.
        captured: Whether the kernel is for graphs.
    """
    kind = np.dtype(char)
    code = f"{_function(captured)}<{_TYPES[kind.name]}, {_NUMBERS['words', bits // 8]}, From<u{bits}>>"
    return _compiled(code, kind.itemsize, 128 // bits, device)


@functools.cache
def put(device: int) -> int:
    """Return the ``CUfunction`` that writes the state for the kernels of a graph; ``device`` is current."""
    return _loaded("put")


def _function(captured: bool) -> str:
    return "fill_captured" if captured else "fill"


_kernels: list[Any] = []  # CuPy's objects, kept alive because the core has only their addresses


def _compiled(code: str, itemsize: int, lanes: int, device: int) -> _core.FillKernel:
    return _core.FillKernel(_loaded(code), itemsize, lanes, most_blocks(cuda.getDeviceProperties(device)))


def _loaded(code: str) -> int:
    """Return the ``CUfunction`` of ``code``, the name of a kernel, on the current device."""
    module = cupy.RawModule(code=_source(), options=("-std=c++17",), name_expressions=(code,))
    _kernels.append(module.get_function(code).kernel)
    loaded_kernels.launched_by_core(_kernels[-1])
    address: int = _kernels[-1].ptr
    return address


@functools.cache
def _source() -> str:
    return (importlib.resources.files("tcuda.random") / "philox.cuh").read_text(encoding="utf-8")
