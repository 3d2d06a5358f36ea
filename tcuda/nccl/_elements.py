"""Elements and operations: the numbers by which NCCL knows dtypes and operations."""

from __future__ import annotations

import functools
import operator
from typing import Any

from tcuda._base.arguments import a_kind

SUM = 0
_PROD, _MAX, _MIN, _AVG = 1, 2, 3, 4
OPS = {SUM: "sum", _PROD: "prod", _MAX: "max", _MIN: "min", _AVG: "avg"}
"""The operations by their numbers in ``ncclRedOp_t``."""

_UINT8, _BFLOAT16 = 1, 9
_KINDS = {"b": 0, "B": _UINT8, "i": 2, "I": 3, "l": 4, "q": 4, "L": 5, "Q": 5, "e": 6, "f": 7, "d": 8}
"""The numbers of ``ncclDataType_t`` by the characters of NumPy's dtypes."""

_BOOL_OPS = {SUM: _MAX, _PROD: _MIN, _MAX: _MAX, _MIN: _MIN}
"""For each operation, the operation on bytes that gives a truth value, as in ``torch.distributed``."""

_COMPLEX = {"F": "f", "D": "d"}
"""For each complex dtype, the dtype of the real and the imaginary part."""

_TORCH_NAMES = {"?": "Bool", "h": "Short", "H": "UInt16", "F": "ComplexFloat", "D": "ComplexDouble"}
"""torch's names of dtypes, for torch's error."""


def operation(op: Any) -> int:
    """Return ``op``, which must be the number of an operation.

    Raises:
        TypeError: ``op`` is not an integer.
        ValueError: No operation has the number ``op``.
    """
    try:
        number = operator.index(op)
    except TypeError:
        raise TypeError(f"op must be an integer; got {a_kind(op)}.") from None
    if number not in OPS:
        allowed = ", ".join(f"{known} ({name})" for known, name in OPS.items())
        raise ValueError(f"op is {number}; the operations of NCCL are {allowed}.")
    return number


@functools.lru_cache(64)  # dtypes with fields can be many
def moved(dtype: Any) -> tuple[int, int]:
    """Return how NCCL copies an element of ``dtype``: NCCL's type, and how many of these make an element.

    NCCL copies an element of a type that it does not know as bytes.
    """
    kind = _kind(dtype)
    return (_UINT8, dtype.itemsize) if kind is None else (kind, 1)


@functools.lru_cache(256)
def reduced(dtype: Any, op: int) -> tuple[int, int, int]:
    """Return how NCCL reduces an element of ``dtype`` with ``op``.

    Returns:
        NCCL's type, how many of these make an element, and NCCL's operation.

    Raises:
        RuntimeError: NCCL cannot reduce such elements with ``op``.
    """
    kind = _kind(dtype)
    if kind is not None:
        return kind, 1, op
    if dtype.char == "?" and op in _BOOL_OPS:
        return _UINT8, 1, _BOOL_OPS[op]
    if dtype.char in _COMPLEX and op in (SUM, _AVG):
        return _KINDS[_COMPLEX[dtype.char]], 2, op
    name = _TORCH_NAMES.get(dtype.char, dtype.name)
    raise RuntimeError(
        f"Unconvertible NCCL type {name}: NCCL has no {OPS[op]} for {dtype.name}. NCCL reduces int8, uint8, int32, "
        "uint32, int64, uint64, float16, bfloat16, float32 and float64; bool without avg; complex64 and complex128 by "
        "sum and avg."
    )


def _kind(dtype: Any) -> int | None:
    """Return NCCL's type for ``dtype``; None if NCCL has none."""
    if dtype.char == "E":  # NumPy has no letter of its own for bfloat16
        return _BFLOAT16 if dtype.name == "bfloat16" else None
    return _KINDS.get(dtype.char)
