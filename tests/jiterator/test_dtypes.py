"""The dtype that several inputs have in common: torch's promotion."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tcuda.jiterator._dtypes import ELEMENT_TYPES, common_dtype


class Dtype(NamedTuple):
    name: str


class Array(NamedTuple):
    dtype: Dtype
    ndim: int = 1


def common(*names: str) -> str:
    """Return the common dtype of arrays; a name that ends in ``()`` is of an array without axes."""
    return common_dtype([Array(Dtype(name.removesuffix("()")), int(not name.endswith("()"))) for name in names])


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_one_dtype_is_its_own_common_dtype(name: str) -> None:
    assert common(name, name) == common(name) == common(f"{name}()") == name


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("bool", "int8", "int8"),
        ("bool", "float16", "float16"),
        ("int8", "int64", "int64"),
        ("uint8", "int8", "int16"),
        ("uint8", "int32", "int32"),
        ("uint16", "int16", "int32"),
        ("uint32", "int8", "int64"),
        ("uint8", "uint64", "uint64"),
        ("int64", "float16", "float16"),
        ("int64", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("float16", "float32", "float32"),
        ("bfloat16", "float64", "float64"),
        ("int64", "complex64", "complex64"),
        ("float16", "complex64", "complex64"),
        ("float64", "complex64", "complex128"),
        ("complex64", "complex128", "complex128"),
    ],
)
def test_two_dtypes_are_promoted_as_in_torch(first: str, second: str, expected: str) -> None:
    assert common(first, second) == common(second, first) == expected


@pytest.mark.parametrize(
    ("with_axes", "zero_dim", "expected"),
    [
        ("float32", "float64()", "float32"),
        ("float16", "float64()", "float16"),
        ("int8", "int64()", "int8"),
        ("uint8", "int8()", "uint8"),
        ("bool", "int8()", "int8"),
        ("int64", "float32()", "float32"),
        ("float32", "int64()", "float32"),
        ("float32", "complex128()", "complex64"),
        ("float64", "complex64()", "complex128"),
        ("int32", "complex128()", "complex128"),
    ],
)
def test_an_array_without_axes_only_raises_the_category(with_axes: str, zero_dim: str, expected: str) -> None:
    assert common(with_axes, zero_dim) == common(zero_dim, with_axes) == expected


def test_uint64_and_a_signed_integer_have_no_common_dtype() -> None:
    with pytest.raises(RuntimeError, match="Promotion of uint64 and int8 is not supported"):
        common("int8", "uint64")


def test_a_dtype_without_a_type_in_cuda_is_named() -> None:
    with pytest.raises(TypeError, match="no kernels for dtype datetime64"):
        common("datetime64[s]")
