"""The names of NumPy 1 that CuPy keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tcuda.testing import assert_array_equal


def test_constants_and_types_are_those_of_numpy_1(xp):
    assert xp.Inf == xp.Infinity == xp.PINF == xp.infty == -xp.NINF == math.inf
    assert math.isnan(xp.NaN)
    assert math.isnan(xp.NAN)
    assert [math.copysign(1, zero) for zero in (xp.NZERO, xp.PZERO)] == [-1, 1]
    assert (xp.float_, xp.complex_, xp.cfloat, xp.singlecomplex) == (
        np.float64,
        np.complex128,
        np.complex128,
        np.complex64,
    )
    assert xp.AxisError is np.exceptions.AxisError
    assert xp.VisibleDeprecationWarning is np.exceptions.VisibleDeprecationWarning


def test_functions_with_old_names_are_those_with_new_names(xp):
    assert xp.alltrue is xp.all
    assert xp.sometrue is xp.any
    assert xp.trapz is xp.trapezoid


@pytest.mark.parametrize(
    ("call", "expected", "warning"),
    [
        (lambda xp, x: xp.product(x, axis=0), [2.0, 12.0, 2.0], "Please use `prod` instead."),
        (lambda xp, x: xp.cumproduct(x), [2.0, 6.0, 6.0, 6.0, 24.0, 48.0], "Please use `cumprod` instead."),
        (lambda xp, x: xp.round_(x / 4), [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], "Please use `round` instead."),
        (lambda xp, x: xp.msort(x), [[1.0, 3.0, 1.0], [2.0, 4.0, 2.0]], "msort is deprecated"),
    ],
)
def test_a_deprecated_function_computes_and_warns(xp, call, expected, warning):
    x = xp.asarray([[2.0, 3.0, 1.0], [1.0, 4.0, 2.0]])
    with pytest.warns(DeprecationWarning, match=warning):
        assert_array_equal(call(xp, x), expected)


def test_in1d_flattens_its_arguments_which_are_arrays(xp):
    x, y = xp.asarray([[1, 2], [3, 4]]), xp.asarray([[2, 4]])
    assert_array_equal(xp.in1d(x, y), [False, True, False, True])
    assert_array_equal(xp.in1d(x, y, invert=True), [True, False, True, False])
    with pytest.raises(AttributeError):
        xp.in1d([1, 2], y)


def test_asfarray_makes_floating_point_numbers(xp):
    assert xp.asfarray([1, 2]).dtype == np.float64
    assert xp.asfarray(xp.asarray([1, 2]), dtype=np.int32).dtype == np.float64
    assert xp.asfarray([1, 2], dtype=np.float32).dtype == np.float32


def test_the_old_functions_of_types(xp):
    assert xp.obj2sctype("f4") is xp.obj2sctype(np.ones(1, np.float32)) is np.float32
    assert xp.obj2sctype(np.floating) is np.floating
    assert xp.obj2sctype("no type", default=5) == 5
    assert [xp.issctype(kind) for kind in (np.int32, np.dtype("f8"), object, 3, "f8")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert xp.issubsctype("f4", np.floating)
    assert not xp.issubsctype(np.int8, np.floating)
    assert xp.issubclass_(np.int8, np.integer)
    assert not xp.issubclass_(3, np.integer)
    assert xp.sctype2char(np.float32) == "f"
    with pytest.raises(ValueError, match="unrecognized type"):
        xp.sctype2char("no type")


@pytest.mark.parametrize("name", ["disp", "find_common_type", "get_array_wrap", "safe_eval", "set_string_function"])
def test_a_function_that_numpy_has_removed_is_refused(xp, name):
    with pytest.raises(RuntimeError, match="This function has been removed in NumPy v2"):
        getattr(xp, name)("f4", "f8")
