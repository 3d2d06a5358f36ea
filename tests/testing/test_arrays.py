"""The assertions for arrays on devices."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda import testing

if TYPE_CHECKING:
    from collections.abc import Callable


EQUAL: list[tuple[Callable[..., Any], Any, Any]] = [
    (testing.assert_allclose, [1.0, 2.0], [1.0, 2.0 + 1e-9]),
    (testing.assert_array_equal, [1, 2], [1, 2]),
    (testing.assert_array_almost_equal, [1.0, 2.0], [1.0, 2.0000001]),
    (testing.assert_array_less, [1, 2], [2, 3]),
    (testing.assert_array_max_ulp, [1.0, 2.0], [1.0, np.nextafter(2.0, 3.0)]),
]


@pytest.mark.parametrize(("check", "left", "right"), EQUAL, ids=lambda value: getattr(value, "__name__", ""))
def test_each_array_is_copied_to_the_host_once(check: Callable[..., Any], left: Any, right: Any, xp: Any) -> None:
    first, second = xp.asarray(left), xp.asarray(right)
    with tcuda.SyncCounter() as counter:
        check(first, second)
        check(first, np.asarray(right))
        check(left, second)
    assert sum(row["count"] for row in counter.counts()) == 4


@pytest.mark.parametrize(
    ("check", "left", "right"),
    [(check, left, [9.0, 1.0]) for check, left, _ in EQUAL],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_difference_is_an_assertion_error_with_the_values(
    check: Callable[..., Any], left: Any, right: Any, xp: Any
) -> None:
    with pytest.raises(AssertionError):
        check(xp.asarray(left), xp.asarray(right))


def test_the_error_shows_the_elements(xp: Any) -> None:
    with pytest.raises(AssertionError, match="(?s)of the layer.*Mismatched elements: 1 / 2"):
        testing.assert_allclose(xp.asarray([1.0, 2.0]), [1.0, 3.0], err_msg="of the layer")


def test_the_arguments_of_numpy_are_accepted(xp: Any) -> None:
    nan = xp.asarray([float("nan")])
    testing.assert_allclose(nan, nan)
    testing.assert_allclose(xp.ones(2), [1.1, 0.95], atol=0.05, rtol=0.05)
    testing.assert_array_almost_equal(xp.ones(2), [1.001, 1], decimal=2)
    assert testing.assert_array_max_ulp(xp.ones(2), np.asarray([1.0, np.nextafter(1.0, 2.0)])).max() == 1
    with pytest.raises(AssertionError):
        testing.assert_allclose(nan, nan, equal_nan=False)
    with pytest.raises(AssertionError, match="dtype"):
        testing.assert_array_equal(xp.ones(2, "f"), np.ones(2), strict=True)


def test_lists_of_arrays_are_accepted(xp: Any) -> None:
    testing.assert_array_equal([xp.arange(3), (1, xp.asarray(2), 3)], [[0, 1, 2], [1, 2, 3]])


@pytest.mark.gpu
def test_arrays_of_other_libraries_are_accepted(xp: Any) -> None:
    array = xp.arange(3)
    testing.assert_array_equal(SimpleNamespace(__cuda_array_interface__=array.__cuda_array_interface__), [0, 1, 2])
