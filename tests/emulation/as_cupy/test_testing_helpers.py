"""``xp.testing``: CuPy's helpers for tests."""

from __future__ import annotations

import random
import unittest
import warnings

import numpy as np
import pytest

from tcuda.emulation import xp
from tcuda.emulation.as_cupy import testing

pytestmark = pytest.mark.emulated


def test_the_module_is_part_of_the_namespace():
    assert xp.testing is testing
    for name in dir(testing):
        assert callable(getattr(testing, name))


@pytest.mark.parametrize(
    ("assertion", "equal", "different"),
    [
        (testing.assert_allclose, ([1.0], [1.0 + 1e-9]), ([1.0], [1.1])),
        (testing.assert_array_almost_equal, ([1.0], [1.0 + 1e-9]), ([1.0], [1.1])),
        (testing.assert_array_almost_equal_nulp, ([1.0], [1.0]), ([1.0], [1.1])),
        (testing.assert_array_max_ulp, ([1.0], [1.0]), ([1.0], [1.1])),
        (testing.assert_array_equal, ([1, 2], [1, 2]), ([1, 2], [1, 3])),
        (testing.assert_array_less, ([1], [2]), ([2], [1])),
        (lambda x, y: testing.assert_array_list_equal([x], [y]), ([1], [1]), ([1], [2])),
    ],
)
def test_assertions_take_arrays_of_devices_and_of_the_host(assertion, equal, different):
    assertion(xp.array(equal[0]), np.array(equal[1]))
    assertion(np.array(equal[0]), xp.array(equal[1]))
    with pytest.raises(AssertionError):
        assertion(xp.array(different[0]), xp.array(different[1]))


def test_strides_and_lengths_are_compared_on_demand():
    c, f = xp.ones((2, 3)), xp.ones((2, 3), order="F")
    testing.assert_array_equal(c, f)
    with pytest.raises(AssertionError, match="Strides are not equal"):
        testing.assert_array_equal(c, f, strides_check=True)
    with pytest.raises(AssertionError, match="List size is different"):
        testing.assert_array_list_equal([c], [c, c])


def passes(decorator, test):
    """Return whether the test passes with the decorator."""
    try:
        decorator(test)()
    except AssertionError:
        return False
    return True


def test_results_of_numpy_and_of_the_device_are_compared():
    equal = testing.numpy_cupy_array_equal()
    assert passes(equal, lambda xp: xp.arange(3))
    assert not passes(equal, lambda xp: xp.arange(3) + (xp is np))
    assert not passes(equal, lambda xp: xp.arange(3, dtype="i4" if xp is np else "i8"))
    assert not passes(equal, lambda xp: xp.zeros(3 + (xp is np)))
    assert not passes(equal, lambda xp: None)
    assert not passes(equal, lambda xp: np.arange(3))  # not an array of the device
    assert passes(testing.numpy_cupy_array_equal(type_check=False), lambda xp: xp.zeros(2, "i4" if xp is np else "i8"))
    assert passes(equal, lambda xp: (xp.ones(2), xp.zeros(1)))
    assert passes(testing.numpy_cupy_equal(), lambda xp: xp.ones(3).shape)
    assert not passes(testing.numpy_cupy_equal(), lambda xp: xp is np)
    assert passes(testing.numpy_cupy_allclose(rtol={np.float64: 1, "default": 0}), lambda xp: xp.ones(2) + (xp is np))
    assert not passes(testing.numpy_cupy_allclose(), lambda xp: xp.ones(2) + 1e-3 * (xp is np))
    assert not passes(testing.numpy_cupy_allclose(), lambda xp: xp.ones((2, 2), order="C" if xp is np else "F"))
    with pytest.raises(TypeError, match="Keys of the tolerance"):
        testing.numpy_cupy_allclose(rtol={1: 0.1})


def raising(first, second):
    def test(xp):
        error = second if xp is np else first
        if error is not None:
            raise error
        return xp.ones(1)

    return test


@pytest.mark.parametrize(
    ("first", "second", "accepted", "expected"),
    [
        (ValueError("a"), ValueError("b"), ValueError, True),
        (ValueError("a"), ValueError("b"), False, False),
        (ValueError("a"), TypeError("b"), Exception, False),
        (ValueError("a"), None, ValueError, False),
        (None, ValueError("a"), ValueError, False),
        (None, None, ValueError, True),
    ],
)
def test_errors_of_both_runs_are_compared(first, second, accepted, expected):
    decorator = testing.numpy_cupy_array_equal(accept_error=accepted)
    assert passes(decorator, raising(first, second)) is expected


def test_a_test_that_skips_both_runs_is_skipped():
    def test(xp):
        raise unittest.SkipTest("no")

    with pytest.raises(unittest.SkipTest):
        testing.numpy_cupy_array_equal()(test)()


class TestDecorated:
    """The decorators as pytest sees them: the arguments they give are no fixtures."""

    @testing.for_all_dtypes(no_complex=True)
    @testing.for_orders(["C", "F"])
    @testing.numpy_cupy_allclose()
    def test_loops_around_a_comparison(self, xp, dtype, order):
        return xp.flip(testing.shaped_arange((2, 3), xp, dtype, order), 0)[::-1]

    @testing.fix_random()
    def test_seeds_are_fixed(self):
        assert testing.generate_seed() == np.random.RandomState(100).randint(0x7FFFFFFF)

    @testing.with_requires("numpy>=99")
    def test_that_is_skipped(self):
        raise AssertionError("numpy>=99")


def test_a_loop_gives_each_type_once():
    seen = []
    testing.for_int_dtypes()(lambda dtype: seen.append(dtype))()
    assert len(seen) == len({np.dtype(each).char for each in seen}) == 11
    pairs = []
    testing.for_dtypes_combination("fd", ("a", "b"), full=True)(lambda a, b: pairs.append((a, b)))()
    assert sorted(pairs) == [("d", "d"), ("d", "f"), ("f", "d"), ("f", "f")]
    some = []
    testing.for_all_dtypes_combination(("a", "b"))(lambda a, b: some.append((a, b)))()
    assert len({a for a, _ in some}) == len({b for _, b in some}) == 16
    axes = []
    testing.for_contiguous_axes()(lambda shape, order, axis: axes.append(axis))(shape=(1, 2, 3), order="F")
    assert axes == [(0,), (0, 1), (0, 1, 2)]


def test_the_failing_choice_is_printed(capsys):
    def test(dtype):
        assert dtype != np.float32

    with pytest.raises(AssertionError):
        testing.for_float_dtypes()(test)()
    assert "float32" in capsys.readouterr().out


@testing.parameterize(*testing.product({"a": [1, 2], "b": ["x"]}))
class TestParameters:
    def test_attributes_are_set(self):
        assert (self.a in (1, 2), self.b) == (True, "x")


@testing.parameterize({"c": 3})
class TestCases(unittest.TestCase):
    def test_attributes_are_set(self):
        assert self.c == 3


def test_a_parameterized_unittest_case_is_replaced():
    assert TestCases is None
    assert "TestCases_param_0_{c=3}" in globals()
    assert testing.product_dict([{"a": 1}], [{"b": 2}, {"b": 3}]) == [{"a": 1, "b": 2}, {"a": 1, "b": 3}]


def test_samples_are_the_same_for_both_modules():
    for make in (testing.shaped_arange, testing.shaped_reverse_arange, testing.shaped_random):
        for dtype in "?hefdFD":
            testing.assert_array_equal(make((2, 3), xp, dtype), make((2, 3), np, dtype), strict=True)
    assert testing.shaped_linspace(-1, 1, (3,), np).tolist() == [-1, 0, 1]
    values = xp.linalg.svd(testing.generate_matrix((3, 2, 2), dtype="D", singular_values=[2.0, 1.0]), compute_uv=False)
    testing.assert_allclose(values, np.tile([2.0, 1.0], (3, 1)))
    with pytest.raises(ValueError, match="too few axes"):
        testing.generate_matrix((3,), singular_values=[1])


def test_conditions():
    assert testing.installed("numpy", "cupy>=14")
    assert not testing.installed("no-such-package")
    assert testing.numpy_satisfies(">=1.20")
    with testing.assert_warns(UserWarning):
        warnings.warn("now", UserWarning, stacklevel=1)
    with pytest.raises(AssertionError, match="UserWarning not triggerred"), testing.assert_warns(UserWarning):
        pass
    with testing.AssertFunctionIsCalled("random.random"):
        random.random()
    with pytest.raises(AssertionError), testing.AssertFunctionIsCalled("random.random"):
        pass
    with pytest.raises(AssertionError, match="random is not set up"):
        testing.generate_seed()


class TestAliasValues(testing.NumpyAliasValuesTestBase):
    func = "result_type"
    args = (np.float32, np.int64)
