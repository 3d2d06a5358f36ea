"""The types of elements: their names in C++, and the type that several inputs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class ElementType(NamedTuple):
    """A dtype in C++.

    Attributes:
        storage: The type of the elements in memory.
        compute: The type ``T`` with which the user's code computes.
        category: The rank in promotions: truth values, integers, real numbers, complex numbers.
    """

    storage: str
    compute: str
    category: int


_BOOL, _INTEGER, _REAL, _COMPLEX = range(4)

ELEMENT_TYPES = {
    "bool": ElementType("bool", "bool", _BOOL),
    "int8": ElementType("signed char", "signed char", _INTEGER),
    "int16": ElementType("short", "short", _INTEGER),
    "int32": ElementType("int", "int", _INTEGER),
    "int64": ElementType("long long", "long long", _INTEGER),
    "uint8": ElementType("unsigned char", "unsigned char", _INTEGER),
    "uint16": ElementType("unsigned short", "unsigned short", _INTEGER),
    "uint32": ElementType("unsigned int", "unsigned int", _INTEGER),
    "uint64": ElementType("unsigned long long", "unsigned long long", _INTEGER),
    "float16": ElementType("__half", "float", _REAL),
    "bfloat16": ElementType("__nv_bfloat16", "float", _REAL),
    "float32": ElementType("float", "float", _REAL),
    "float64": ElementType("double", "double", _REAL),
    "complex64": ElementType("complex<float>", "complex<float>", _COMPLEX),
    "complex128": ElementType("complex<double>", "complex<double>", _COMPLEX),
}
"""The types that kernels can compute with, by the name of the dtype."""

_REALS = {"float16": 0, "bfloat16": 0, "float32": 1, "float64": 2}
_COMPLEX_OF = {"float64": "complex128"}


def common_dtype(inputs: Sequence[Any]) -> str:
    """Return the name of the dtype that the arrays ``inputs`` have in common, by the rules of torch.

    If other inputs have axes, a 0-dimensional array changes the dtype only if the category of the array is higher. For
    example, an array of integers and a 0-dimensional float have a dtype of floats in common.

    Raises:
        TypeError: A dtype has no counterpart in CUDA C++.
        RuntimeError: Two inputs have integer dtypes, and no integer dtype has the values of both.
    """
    with_axes = zero_dim = ""
    for array in inputs:
        name = array.dtype.name
        if name not in ELEMENT_TYPES:
            raise TypeError(f"jiterator has no kernels for dtype {name}. Allowed are {', '.join(ELEMENT_TYPES)}.")
        if array.ndim:
            with_axes = _promoted(with_axes, name)
        else:
            zero_dim = _promoted(zero_dim, name)
    return _combined(with_axes, zero_dim)


def _combined(with_axes: str, zero_dim: str) -> str:
    if not with_axes or not zero_dim:
        return with_axes or zero_dim
    high, low = ELEMENT_TYPES[with_axes].category, ELEMENT_TYPES[zero_dim].category
    if high == _REAL and low == _COMPLEX:
        return _COMPLEX_OF.get(with_axes, "complex64")
    if high < _REAL and (high == _BOOL or low >= _REAL):
        return _promoted(with_axes, zero_dim)
    return with_axes


def _promoted(first: str, second: str) -> str:
    """Return the dtype with the values of both dtypes; ``second`` if ``first`` is empty."""
    if not first or first == second:
        return second
    low, high = sorted((first, second), key=lambda name: ELEMENT_TYPES[name].category)
    category = ELEMENT_TYPES[high].category
    if category == _COMPLEX:
        return "complex128" if {"float64", "complex128"} & {low, high} else "complex64"
    if ELEMENT_TYPES[low].category != category:
        return high
    if category == _REAL:
        if _REALS[low] == _REALS[high]:
            return "float32"  # float16 and bfloat16
        return max(low, high, key=_REALS.__getitem__)
    return _promoted_integers(low, high)


def _promoted_integers(first: str, second: str) -> str:
    signed, unsigned = sorted((first, second))  # "int..." comes before "uint..."
    bits = {name: int(name.lstrip("uint")) for name in (first, second)}
    if signed.startswith("u") or not unsigned.startswith("u"):
        return max(first, second, key=bits.__getitem__)
    if bits[signed] > bits[unsigned]:
        return signed
    if bits[unsigned] == 64:
        raise RuntimeError(
            f"Promotion of uint64 and {signed} is not supported: no integer dtype has the values of both. "
            "Convert one array with astype() first."
        )
    return f"int{2 * bits[unsigned]}"
