"""The types of the results of vectorized functions, which are found in the source."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tcuda

pytestmark = pytest.mark.usefixtures("runtime")


def extent(x, y):
    return max(x, y) - min(x, y)


@pytest.mark.parametrize("types", [("u4", "i8", "i8"), ("i1", "u1", "i2"), ("f2", "i4", "f8"), ("u8", "u8", "u8")])
def test_results_have_one_type_whichever_branch_an_element_takes(types):
    first, second, expected = types
    xp = tcuda.xp
    x, y = xp.asarray([3, 1], first), xp.asarray([1, 3], second)
    made = xp.vectorize(extent)(x, y)
    assert (made.dtype, made.tolist()) == (np.dtype(expected), [2, 2])
    assert xp.vectorize(extent)(x[:0], y[:0]).dtype == np.dtype(expected)


def test_large_integers_keep_all_their_digits():
    def chosen(x, y):
        if x > y:
            return x
        return y

    x = tcuda.xp.asarray([2**63 + 1, 0], "u8")
    assert tcuda.xp.vectorize(chosen)(x, x).tolist() == [2**63 + 1, 0]


def test_several_results_have_a_type_each():
    def both(x, y):
        return x + y, x / y

    total, quotient = tcuda.xp.vectorize(both)(tcuda.xp.asarray([2, 4], "i4"), tcuda.xp.asarray([1, 2], "i4"))
    assert (total.dtype, quotient.dtype) == (np.int32, np.float64)


def test_types_that_do_not_fit_together_are_refused():
    def tuples(x, y):
        z = x, y
        z = z, x
        return x

    def late_constant(x):
        if x == 3:
            kind = np.float32  # noqa: F841
        return x

    def negative(x):
        return -x

    xp = tcuda.xp
    x = xp.asarray([1, 2])
    with pytest.raises(TypeError, match="Data type mismatch of variable"):
        xp.vectorize(tuples)(x, x)
    with pytest.raises(TypeError):
        xp.vectorize(late_constant)(x)
    with pytest.raises(TypeError):
        xp.vectorize(negative)(x == 1)


def test_a_lambda_beside_another_is_refused():
    pair = [lambda a: a + 1, lambda a: a * 2]
    with pytest.raises(ValueError, match="Multiple callables are found"):
        tcuda.xp.vectorize(pair[0])(tcuda.xp.ones(2))


def test_universal_functions_have_the_loops_of_cupy():
    xp = tcuda.xp

    def inverse(x):
        return xp.reciprocal(x)

    def rounded(x):
        return xp.ceil(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert xp.vectorize(inverse)(xp.asarray([1, 2], "i1")).dtype == np.int8
    assert xp.vectorize(inverse)(xp.asarray([2], "f2")).dtype == np.float16
    assert xp.vectorize(rounded)(xp.asarray([True])).dtype == np.bool_


@pytest.mark.emulated  # a GPU needs the source
def test_a_function_without_source_has_the_types_of_its_values():
    space = {}
    exec("def twice(x): return x + x", space)
    made = tcuda.xp.vectorize(space["twice"])(tcuda.xp.asarray([1, 2], "i2"))
    assert (made.dtype, made.tolist()) == (np.int16, [2, 4])
    assert tcuda.xp.vectorize(abs)(tcuda.xp.asarray([-1.0])).tolist() == [1.0]
