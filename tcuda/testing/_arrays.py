"""Assertions of ``numpy.testing`` for arrays on devices.

NumPy is imported by the first assertion, because pytest loads this package in every run.
"""

from __future__ import annotations

from typing import Any


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-07,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
    *,
    strict: bool = False,
) -> None:
    """Require that two arrays are equal up to a tolerance (``numpy.testing.assert_allclose``).

    All assertions of this module take arrays of a device, arrays of NumPy, numbers, and lists and tuples of these. Each
    array of a device is copied to the host once, on the current stream. An array of another library is accepted if the
    array has ``__cuda_array_interface__``.

    Args:
        actual: The array that the test computed.
        desired: The array that the test expects.
        rtol: The tolerance relative to ``desired``.
        atol: The absolute tolerance, which is added.
        equal_nan: Whether two NaNs count as equal.
        err_msg: A text for the message of the error.
        verbose: Whether the message shows the values that differ.
        strict: Whether shapes and dtypes must be equal too.

    Raises:
        AssertionError: The difference of two elements is larger than ``atol + rtol * abs(desired)``.

    Example:
        >>> x = tcuda.xp.linspace(0, 1, 5)
        >>> tcuda.testing.assert_allclose(x * x, [0, 0.0625, 0.25, 0.5625, 1])
    """
    __tracebackhide__ = True
    from numpy import testing

    testing.assert_allclose(
        _on_host(actual),
        _on_host(desired),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        err_msg=err_msg,
        verbose=verbose,
        strict=strict,
    )


def assert_array_equal(
    actual: Any, desired: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False
) -> None:
    """Require that two arrays are equal (``numpy.testing.assert_array_equal``).

    Args:
        actual: The array that the test computed.
        desired: The array that the test expects.
        err_msg: A text for the message of the error.
        verbose: Whether the message shows the values that differ.
        strict: Whether shapes and dtypes must be equal too.

    Raises:
        AssertionError: Two elements differ, or the shapes do not match.

    Example:
        >>> tcuda.testing.assert_array_equal(tcuda.xp.arange(3) * 2, [0, 2, 4])
    """
    __tracebackhide__ = True
    from numpy import testing

    testing.assert_array_equal(_on_host(actual), _on_host(desired), err_msg=err_msg, verbose=verbose, strict=strict)


def assert_array_almost_equal(
    actual: Any, desired: Any, decimal: int = 6, err_msg: str = "", verbose: bool = True
) -> None:
    """Require that two arrays are equal up to a decimal place (``numpy.testing.assert_array_almost_equal``).

    Args:
        actual: The array that the test computed.
        desired: The array that the test expects.
        decimal: The number of decimal places.
        err_msg: A text for the message of the error.
        verbose: Whether the message shows the values that differ.

    Raises:
        AssertionError: Two elements differ by ``1.5 * 10**-decimal`` or more.

    Example:
        >>> tcuda.testing.assert_array_almost_equal(tcuda.xp.sqrt(tcuda.xp.asarray(2.0)), 1.4142, decimal=4)
    """
    __tracebackhide__ = True
    from numpy import testing

    testing.assert_array_almost_equal(
        _on_host(actual), _on_host(desired), decimal=decimal, err_msg=err_msg, verbose=verbose
    )


def assert_array_less(x: Any, y: Any, err_msg: str = "", verbose: bool = True, *, strict: bool = False) -> None:
    """Require that every element of ``x`` is less than that of ``y`` (``numpy.testing.assert_array_less``).

    Args:
        x: The array with the smaller elements.
        y: The array with the larger elements.
        err_msg: A text for the message of the error.
        verbose: Whether the message shows the values.
        strict: Whether shapes and dtypes must be equal too.

    Raises:
        AssertionError: An element of ``x`` is not less than that of ``y``.

    Example:
        >>> tcuda.testing.assert_array_less(tcuda.xp.zeros(3), 1)
    """
    __tracebackhide__ = True
    from numpy import testing

    testing.assert_array_less(_on_host(x), _on_host(y), err_msg=err_msg, verbose=verbose, strict=strict)


def assert_array_max_ulp(a: Any, b: Any, maxulp: int = 1, dtype: Any = None) -> Any:
    """Require that two arrays differ by a few floating-point numbers only (``numpy.testing.assert_array_max_ulp``).

    Args:
        a: An array.
        b: The other array.
        maxulp: The number of units in the last place by which elements may differ.
        dtype: The dtype to which both arrays are converted first; no conversion if None.

    Returns:
        The differences, an array of NumPy, in units in the last place.

    Raises:
        AssertionError: Two elements differ by more than ``maxulp`` units.

    Example:
        >>> x = tcuda.xp.asarray([0.1, 0.2])
        >>> tcuda.testing.assert_array_max_ulp(x * 3, [0.3, 0.6], maxulp=1).max()
        np.float64(1.0)
    """
    __tracebackhide__ = True
    from numpy import testing

    return testing.assert_array_max_ulp(_on_host(a), _on_host(b), maxulp=maxulp, dtype=dtype)


def _on_host(value: Any) -> Any:
    """Return an array of NumPy for an array of a device, and every other value as found."""
    if isinstance(value, (list, tuple)):
        return [_on_host(element) for element in value]
    if not hasattr(value, "__cuda_array_interface__"):
        return value
    if hasattr(value, "get"):
        return value.get()
    import tcuda

    return tcuda.xp.asarray(value).get()
