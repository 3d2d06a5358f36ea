"""NumPy's assertions about arrays, for arrays of devices too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.arrays.host import asnumpy

if TYPE_CHECKING:
    from collections.abc import Sequence


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-7,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
    *,
    strict: bool = False,
) -> None:
    """Require that two arrays are equal up to a tolerance (``numpy.testing.assert_allclose``)."""
    np.testing.assert_allclose(
        asnumpy(actual), asnumpy(desired), rtol, atol, equal_nan, err_msg, verbose, strict=strict
    )


def assert_array_almost_equal(
    actual: Any, desired: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True
) -> None:
    """Require that two arrays are equal up to a decimal place (``numpy.testing.assert_array_almost_equal``)."""
    np.testing.assert_array_almost_equal(asnumpy(actual), asnumpy(desired), decimal, err_msg, verbose)


def assert_array_almost_equal_nulp(x: Any, y: Any, nulp: int = 1) -> None:
    """Require that two arrays are equal up to their spacing (``numpy.testing.assert_array_almost_equal_nulp``)."""
    np.testing.assert_array_almost_equal_nulp(asnumpy(x), asnumpy(y), nulp)


def assert_array_max_ulp(a: Any, b: Any, maxulp: int = 1, dtype: Any = None) -> None:
    """Require that the elements differ by few units in the last place (``numpy.testing.assert_array_max_ulp``)."""
    np.testing.assert_array_max_ulp(asnumpy(a), asnumpy(b), maxulp, dtype)


def assert_array_equal(
    actual: Any,
    desired: Any,
    err_msg: str = "",
    verbose: bool = True,
    *,
    strict: bool = False,
    strides_check: bool = False,
) -> None:
    """Require that two arrays are equal (``numpy.testing.assert_array_equal``).

    Args:
        actual: An array of a device or of the host.
        desired: The expected array.
        err_msg: A text for the message.
        verbose: Whether the message has the arrays.
        strict: Whether shapes and types must be equal too.
        strides_check: Whether the strides must be equal too.

    Raises:
        AssertionError: The arrays are not equal.
    """
    np.testing.assert_array_equal(asnumpy(actual), asnumpy(desired), err_msg, verbose, strict=strict)
    if strides_check and actual.strides != desired.strides:
        lines = [f"Strides are not equal:{err_msg and f' {err_msg}'}"]
        if verbose:
            lines += [f" x: {actual.strides}", f" y: {desired.strides}"]
        raise AssertionError("\n".join(lines))


def assert_array_list_equal(
    xlist: Sequence[Any], ylist: Sequence[Any], err_msg: str = "", verbose: bool = True
) -> None:
    """Require that two lists have equal arrays at all places."""
    if type(xlist) is not type(ylist):
        raise AssertionError(f"Matching types of list or tuple are expected, but were different types: {type(xlist)} "
                             f"and {type(ylist)}")  # fmt: skip
    if len(xlist) != len(ylist):
        raise AssertionError(f"List size is different: {len(xlist)} and {len(ylist)}")
    for x, y in zip(xlist, ylist, strict=True):
        assert_array_equal(x, y, err_msg, verbose)


def assert_array_less(x: Any, y: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False) -> None:
    """Require that the elements of ``x`` are less than those of ``y`` (``numpy.testing.assert_array_less``)."""
    np.testing.assert_array_less(asnumpy(x), asnumpy(y), err_msg, verbose, strict=strict)
