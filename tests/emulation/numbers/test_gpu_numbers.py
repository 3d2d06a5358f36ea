"""Operations on arrays whose numbers a GPU defines and NumPy gives otherwise, refuses, or leaves to the processor."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tcuda
from support.gpu_numbers import MEASURED, SPECIAL, same

pytestmark = pytest.mark.usefixtures("runtime")


@pytest.mark.parametrize("dtype", MEASURED["power"])
def test_integers_have_powers_with_negative_exponents(xp, dtype):
    bases = xp.asarray(MEASURED["bases"], dtype)
    for exponent, expected in MEASURED["power"][dtype].items():
        exponents = xp.full(len(expected), int(exponent), dtype)
        assert xp.power(bases, exponents).tolist() == expected
        assert (bases ** int(exponent)).tolist() == expected
        assert xp.power(bases, exponents).dtype == dtype
        changed = bases.copy()
        changed **= exponents
        assert changed.tolist() == expected


def test_negative_exponents_of_a_part_of_the_elements(xp):
    bases, exponents = xp.asarray([2, 2, -1, -1, 3, 0]), xp.asarray([-1, 3, -3, -2, 2, -2])
    assert (bases**exponents).tolist() == [0, 8, -1, 1, 9, 0]
    assert (2**exponents).tolist() == [0, 8, 0, 0, 4, 0]
    out = xp.zeros(6, np.int16)
    xp.power(bases.astype(np.int16), exponents.astype(np.int16), out=out)
    assert out.tolist() == [0, 8, -1, 1, 9, 0]
    assert xp.power(bases[:5], -1, dtype=np.float64).tolist() == pytest.approx([0.5, 0.5, -1, -1, 1 / 3], rel=1e-15)
    assert (xp.asarray([2.0, 4.0]) ** -1).tolist() == [0.5, 0.25]


@pytest.mark.emulated  # CuPy translates the source of a vectorized function, which names no xp there.
def test_negative_exponents_in_fused_and_vectorized_functions(xp):
    def raised(x, y):
        return x**y

    def inverse(x):
        return xp.power(x, -1)

    bases = xp.asarray([2, 1, -1])
    assert xp.fuse(raised)(bases, xp.asarray([-1, -1, -1])).tolist() == [0, 1, -1]
    assert xp.fuse(inverse)(bases).tolist() == [0, 1, -1]
    assert xp.vectorize(inverse)(bases).tolist() == [0, 1, -1]


@pytest.mark.parametrize("dtype", MEASURED["floor_divide"])
def test_quotients_of_infinities_are_those_of_a_division(xp, dtype):
    special = xp.asarray(SPECIAL, dtype)
    expected = np.asarray(MEASURED["floor_divide"][dtype], float)
    assert same(xp.floor_divide(special[:, None], special).get(), expected)
    assert same((special[:, None] // special).get(), expected)

    def quotient(x, y):
        return x // y

    assert same(xp.fuse(quotient)(special[:, None], special).get(), expected)


def test_floor_divide_rounds_the_quotient(xp):
    assert (xp.asarray([1.0, 7.5, -7.5]) // xp.asarray([0.1, 2.0, 2.0])).tolist() == [10.0, 3.0, -4.0]
    assert (xp.asarray([7, -7]) // 2).tolist() == [3, -4]
    halves = xp.asarray([1.0, 60000.0], np.float16) // xp.asarray([0.1, 7.0], np.float16)
    assert halves.dtype == np.float16
    assert halves.tolist() == [10.0, 8568.0]


def test_expm1_of_complex_numbers(xp):
    given, expected = (np.array([complex(text) for text in MEASURED["expm1 complex128"][key]]) for key in ("in", "out"))
    found = xp.expm1(xp.asarray(given)).get()
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    finite = ~np.isnan(expected.real) & ~np.isnan(expected.imag)
    assert same(np.sign(found[finite].imag), np.sign(expected[finite].imag))
    assert xp.expm1(xp.asarray([1e-12])).tolist() == [np.expm1(1e-12)]


def test_clip_compares(xp):
    special = xp.asarray(SPECIAL)
    assert same(xp.clip(special, -1, 1).get(), np.asarray(MEASURED["clip nan"], float))
    values = xp.asarray([1.0, 2.0, np.nan])
    assert same(xp.clip(values, np.nan, 1.5).get(), [1.0, 1.5, np.nan])
    assert same(values.clip(1.5, np.nan).get(), [1.5, 2.0, np.nan])
    assert values.clip(3.0, 0.0).tolist() == [0.0, 0.0, 0.0]
    assert same(xp.clip(values, None, xp.asarray([np.nan, 1.5, 1.5])).get(), [1.0, 1.5, np.nan])
    out = xp.zeros(3)
    assert xp.clip(values, np.nan, 1.5, out=out) is out
    assert same(out.get(), [1.0, 1.5, np.nan])


@pytest.mark.emulated  # The messages of a GPU about the median of nothing are CuPy's.
@pytest.mark.parametrize("name", ["mean", "var", "std", "median", "nanmean", "nanvar", "nanstd", "nanmedian"])
def test_statistics_of_no_elements_are_nan_without_a_warning(xp, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(float(getattr(xp, name)(xp.asarray([]))))
        if name.startswith("nan"):
            assert np.isnan(float(getattr(xp, name)(xp.asarray([np.nan, np.nan]))))
        if name in ("var", "std", "nanvar", "nanstd"):
            assert np.isnan(float(getattr(xp, name)(xp.asarray([1.0]), ddof=1)))
        tcuda.synchronize()


SHIFTED = {
    "unsigned int": np.uint32,
    "int": np.int32,
    "unsigned long long": np.uint64,
    "long long": np.int64,
    "unsigned char": np.uint8,
    "short": np.int16,
}


@pytest.mark.parametrize("key", MEASURED["shifts"])
def test_arrays_are_shifted_by_any_count(xp, key):
    name, _, number = key.rpartition(" ")
    dtype = SHIFTED[name]
    value = xp.asarray(np.asarray([int(number)], np.int64).astype(dtype))
    limits = np.iinfo(dtype)
    for direction, shift in (("left", xp.left_shift), ("right", xp.right_shift)):
        for count, expected in zip(MEASURED["counts"], MEASURED["shifts"][key][direction], strict=True):
            if limits.min <= count <= limits.max:
                assert shift(value, xp.asarray([count], dtype)).tolist() == [expected], (direction, count)


def _special(dtype):
    with np.errstate(over="ignore"):
        return np.asarray([float(text) for text in MEASURED["values"]]).astype(dtype)


def _assigned(xp, values, dtype):
    target = xp.zeros(values.shape, dtype)
    target[...] = values
    return target


def _assigned_by_indices(xp, values, dtype):
    target = xp.zeros(values.shape, dtype)
    target[xp.arange(values.size)] = values
    return target


def _copied(xp, values, dtype):
    target = xp.zeros(values.shape, dtype)
    xp.copyto(target, values, casting="unsafe")
    return target


def _put(xp, values, dtype):
    target = xp.zeros(values.shape, dtype)
    target.put(xp.arange(values.size), values)
    return target


def _fused(xp, values, dtype):
    def converted(x):
        return x.astype(dtype)

    return xp.fuse(converted)(values)


def _filled(xp, values, dtype):
    target = xp.zeros(values.shape, dtype)
    for place in range(values.size):
        target[place : place + 1].fill(values[place])
    return target


CASTS = {
    "astype": lambda xp, values, dtype: values.astype(dtype),
    "asarray": lambda xp, values, dtype: xp.asarray(values, dtype),
    "strided": lambda xp, values, dtype: xp.repeat(values, 2)[::2].astype(dtype),
    "assignment": _assigned,
    "indices": _assigned_by_indices,
    "copyto": _copied,
    "put": _put,
    "fuse": _fused,
    "fill": _filled,
    "sum": lambda xp, values, dtype: values[:, None].sum(axis=1, dtype=dtype),
    "cumsum": lambda xp, values, dtype: xp.cumsum(values[:, None], axis=1, dtype=dtype)[:, 0],
    "concatenate": lambda xp, values, dtype: xp.concatenate([values], dtype=dtype, casting="unsafe"),
    "stack": lambda xp, values, dtype: xp.stack([values], out=xp.zeros((1, values.size), dtype), casting="unsafe")[0],
    "add.reduce": lambda xp, values, dtype: xp.add.reduce(values[:, None], axis=1, dtype=dtype),
}


@pytest.mark.parametrize("key", MEASURED["astype"])
@pytest.mark.parametrize("cast", CASTS)
def test_casts_give_the_nearest_number_of_32_or_64_bits(xp, cast, key):
    source, _, target = key.partition("->")
    if cast in ("sum", "add.reduce", "cumsum") and target == "bool":
        return
    found = CASTS[cast](xp, xp.asarray(_special(source)), np.dtype(target))
    assert found.dtype == target
    assert found.get().tolist() == MEASURED["astype"][key]


@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_results_are_cast_to_the_type_of_an_output(xp, target):
    values = xp.asarray(_special("float64"))
    out = xp.zeros(values.shape, target)
    assert xp.positive(values, out=out, casting="unsafe") is out
    assert out.get().tolist() == MEASURED["astype"][f"float64->{target}"]
    assert xp.add(values, xp.zeros_like(values), out, casting="unsafe").tolist() == out.tolist()


@pytest.mark.emulated  # CuPy takes the integers of the view for the source, because both begin at the same address.
def test_a_cast_may_overwrite_its_source(xp):
    values = xp.asarray([np.nan, 1e10, -1.5], np.float32)
    values.view(np.int32)[...] = values
    assert values.view(np.int32).tolist() == [0, 2**31 - 1, -1]


def test_the_real_parts_of_complex_numbers_are_cast(xp):
    with pytest.warns(np.exceptions.ComplexWarning):
        found = xp.asarray([1e10 + 1j, -2.5]).astype(np.int32)
    assert found.tolist() == [2**31 - 1, -2]


def test_numbers_that_fit_are_cut(xp):
    values = np.array([2147483647.5, -2147483648.5, 4294967295.5, 9.2e18, -0.5, 2.5])
    assert xp.asarray(values[[0, 1, 4, 5]]).astype(np.int32).tolist() == [2147483647, -2147483648, 0, 2]
    assert xp.asarray(values[[0, 2, 4, 5]]).astype(np.uint32).tolist() == [2147483647, 4294967295, 0, 2]
    assert xp.asarray(values[[3, 4, 5]]).astype(np.uint64).tolist() == [9200000000000000000, 0, 2]
    assert xp.asarray([2147483520.0], np.float32).astype(np.int32).tolist() == [2147483520]


def test_the_signs_of_booleans_have_8_bits(xp):
    given = xp.asarray([True, False])
    made = xp.sign(given)
    assert (made.dtype, made.tolist()) == (np.int8, [1, 0])
    assert xp.sign(given, out=xp.zeros(2)).tolist() == [1, 0]
    assert xp.sign(given, dtype="f4").dtype == np.float32
