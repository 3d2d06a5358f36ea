"""Decorators that run a test with NumPy and with arrays of a device, and compare the results."""

from __future__ import annotations

import importlib
import traceback
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation.as_cupy.testing import assertions
from tcuda.emulation.as_cupy.testing.namespace import namespace
from tcuda.emulation.as_cupy.testing.signatures import giving
from tcuda.emulation.as_cupy.testing.skips import skips
from tcuda.emulation.devices.strided import Strided
from tcuda.emulation.work import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[Any, Any], object]
    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
    Tolerance = float | dict[Any, float]

_KINDS = (
    AttributeError,
    IndexError,
    TypeError,
    ValueError,
    NotImplementedError,
    DeprecationWarning,
    np.exceptions.AxisError if hasattr(np, "exceptions") else np.AxisError,  # type: ignore[attr-defined]
    np.linalg.LinAlgError,
)
"""The types of errors that a program may handle, by which two errors are compared."""


class _Outcome:
    """What a test returned, or the error that it raised."""

    def __init__(self, test: Callable[..., Any], args: Any, kwargs: Any, modules: dict[str | None, str]) -> None:
        given = {name: importlib.import_module(module) for name, module in modules.items() if name is not None}
        self.result: Any = None
        self.error: BaseException | None = None
        try:
            self.result = test(*args, **{**kwargs, **given})
        except BaseException as error:
            if not isinstance(error, (Exception, *skips())):
                raise
            self.error = error


def _run_both(
    test: Callable[..., Any], args: Any, kwargs: Any, name: str, sp_name: str | None, scipy_name: str | None
) -> tuple[_Outcome, _Outcome]:
    """Run ``test`` with arrays of a device and with NumPy."""
    ours = {name: namespace().__name__, sp_name: "tcuda.emulation.cupyx.scipy.sparse",
            scipy_name: "tcuda.emulation.cupyx.scipy"}  # fmt: skip
    numpys = {name: "numpy", sp_name: "scipy.sparse", scipy_name: "scipy"}
    return _Outcome(test, args, kwargs, ours), _Outcome(test, args, kwargs, numpys)


def _require_same_error(device: _Outcome, host: _Outcome, accepted: Any) -> None:
    """Require that both runs raised errors of the same type, which is among ``accepted``.

    Raises:
        AssertionError: The errors differ, are missing, or are not accepted.
    """
    first, second = device.error, host.error
    if isinstance(first, skips()) and isinstance(second, skips()):
        if type(first) is not type(second) or first.args != second.args:
            raise AssertionError("Both numpy and cupy were skipped but with different causes.")
        raise second
    if first is None and second is None:
        raise AssertionError("Both cupy and numpy are expected to raise errors, but not")
    if first is None or second is None:
        only, error = ("numpy", second) if first is None else ("cupy", first)
        raise AssertionError(f"Only {only} raises error\n\n{_formatted(error)}") from error
    accepted = Exception if accepted is True else accepted or ()
    if any(isinstance(first, kind) != isinstance(second, kind) for kind in _KINDS):
        what = "Different types of errors occurred"
    elif not (isinstance(first, accepted) and isinstance(second, accepted)):
        what = "Both cupy and numpy raise exceptions"
    else:
        return
    raise AssertionError(f"{what}\n\ncupy\n{_formatted(first)}\nnumpy\n{_formatted(second)}") from first


def _formatted(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _comparing(
    check: Check,
    name: str,
    type_check: bool,
    contiguous_check: bool,
    accept_error: Any,
    sp_name: str | None,
    scipy_name: str | None,
) -> Decorator:
    """Return a decorator that requires ``check(device_array, host_array)`` of the results of a test."""

    def decorate(test: Callable[..., Any]) -> Any:
        @giving(test, name, sp_name, scipy_name)
        def compare(*args: Any, **kwargs: Any) -> None:
            device, host = _run_both(test, args, kwargs, name, sp_name, scipy_name)
            if device.error or host.error:
                _require_same_error(device, host, accept_error)
                return
            results, expected = _several(device.result), _several(host.result)
            assert len(results) == len(expected), f"{len(results)} results, but NumPy has {len(expected)}"
            pairs = [_as_arrays(*pair) for pair in zip(results, expected, strict=True)]
            for result, wanted in pairs:
                if type_check and result.dtype != wanted.dtype:
                    raise AssertionError(
                        f"ndarrays of different dtypes are returned.\ncupy: {result.dtype}\nnumpy: {wanted.dtype}"
                    )
                if contiguous_check:
                    _require_contiguous(result, wanted)
                assert result.shape == wanted.shape
            for result, wanted in pairs:
                check(result, wanted)

        return compare

    return decorate


def _several(result: Any) -> Any:
    assert result is not None, "the test returned nothing to compare"
    return result if isinstance(result, (tuple, list)) else (result,)


def _as_arrays(result: Any, wanted: Any) -> tuple[Any, Any]:
    """Return two results as arrays.

    Raises:
        AssertionError: The results are of different kinds.
    """
    if isinstance(result, Strided) and isinstance(wanted, (np.ndarray, np.generic)):
        return result, wanted
    if isinstance(wanted, np.poly1d) and hasattr(result, "coeffs"):
        assert result.variable == wanted.variable
        return result.coeffs, wanted.coeffs
    if isinstance(result, np.generic) and isinstance(wanted, np.generic):
        return result, wanted
    if np.isscalar(result) and np.isscalar(wanted):
        return creation.array(result), np.array(wanted)
    raise AssertionError(
        f"numpy and cupy returns different type of return value:\ncupy: {type(result)}\nnumpy: {type(wanted)}"
    )


def _require_contiguous(result: Any, wanted: Any) -> None:
    if isinstance(wanted, np.ndarray) and isinstance(result, Strided):
        for flag in ("c_contiguous", "f_contiguous"):
            if getattr(wanted.flags, flag) and not getattr(result.flags, flag):
                raise AssertionError(f"The state of {flag} flag is false, and true for NumPy.")


def numpy_cupy_allclose(
    rtol: Tolerance = 1e-7,
    atol: Tolerance = 0,
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name: str | None = None,
    scipy_name: str | None = None,
    contiguous_check: bool = True,
    *,
    _check_sparse_format: bool = True,
) -> Decorator:
    """Require that the results are equal up to a tolerance, which may be a dictionary by type with a ``"default"``.

    Raises:
        TypeError: A tolerance is a dictionary with other keys, or although the types are not compared.
    """
    for tolerance in (rtol, atol):
        if isinstance(tolerance, dict):
            if not all(type(key) is type or key == "default" for key in tolerance):
                raise TypeError("Keys of the tolerance dictionary need to be type objects or the string 'default'.")
            if not type_check:
                raise TypeError("When `type_check` is `False`, `rtol` and `atol` must be supplied as float.")

    def check(result: Any, wanted: Any) -> None:
        relative, absolute = _tolerance(rtol, result.dtype), _tolerance(atol, result.dtype)
        assertions.assert_allclose(result, wanted, relative, absolute, err_msg=err_msg, verbose=verbose)

    return _comparing(check, name, type_check, contiguous_check, accept_error, sp_name, scipy_name)


def _tolerance(tolerance: Tolerance, dtype: np.dtype[Any]) -> float:
    if not isinstance(tolerance, dict):
        return tolerance
    found = tolerance.get(dtype.type, tolerance.get("default"))
    if found is None:
        raise TypeError(f"Can not find tolerance for {dtype.type}")
    return found


def numpy_cupy_array_almost_equal(
    decimal: int = 6,
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name: str | None = None,
    scipy_name: str | None = None,
) -> Decorator:
    """Require that the results are equal up to a decimal place."""

    def check(result: Any, wanted: Any) -> None:
        assertions.assert_array_almost_equal(result, wanted, decimal, err_msg, verbose)

    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_almost_equal_nulp(
    nulp: int = 1,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name: str | None = None,
    scipy_name: str | None = None,
) -> Decorator:
    """Require that the results are equal up to their spacing."""

    def check(result: Any, wanted: Any) -> None:
        assertions.assert_array_almost_equal_nulp(result, wanted, nulp)

    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_max_ulp(
    maxulp: int = 1,
    dtype: Any = None,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name: str | None = None,
    scipy_name: str | None = None,
) -> Decorator:
    """Require that the results differ by few units in the last place."""

    def check(result: Any, wanted: Any) -> None:
        assertions.assert_array_max_ulp(result, wanted, maxulp, dtype)

    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_equal(
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name: str | None = None,
    scipy_name: str | None = None,
    strides_check: bool = False,
) -> Decorator:
    """Require that the results are equal; with ``strides_check``, their strides too."""

    def check(result: Any, wanted: Any) -> None:
        assertions.assert_array_equal(result, wanted, err_msg, verbose, strides_check=strides_check)

    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_array_list_equal(
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    sp_name: str | None = None,
    scipy_name: str | None = None,
) -> Decorator:
    """Require that the results are lists of equal arrays."""
    warnings.warn(
        "numpy_cupy_array_list_equal is deprecated. Use numpy_cupy_array_equal instead.",
        DeprecationWarning,
        stacklevel=2,
    )

    def check(result: Any, wanted: Any) -> None:
        assertions.assert_array_equal(result, wanted, err_msg, verbose)

    return _comparing(check, name, False, False, False, sp_name, scipy_name)


def numpy_cupy_array_less(
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name: str | None = None,
    scipy_name: str | None = None,
) -> Decorator:
    """Require that the results of the device are less than those of NumPy."""

    def check(result: Any, wanted: Any) -> None:
        assertions.assert_array_less(result, wanted, err_msg, verbose)

    return _comparing(check, name, type_check, False, accept_error, sp_name, scipy_name)


def numpy_cupy_equal(name: str = "xp", sp_name: str | None = None, scipy_name: str | None = None) -> Decorator:
    """Require that the results, which are no arrays, are equal."""

    def decorate(test: Callable[..., Any]) -> Any:
        @giving(test, name, sp_name, scipy_name)
        def compare(*args: Any, **kwargs: Any) -> None:
            device, host = _run_both(test, args, kwargs, name, sp_name, scipy_name)
            if device.error or host.error:
                _require_same_error(device, host, False)
            elif device.result != host.result:
                raise AssertionError(f"Results are not equal:\ncupy: {device.result}\nnumpy: {host.result}")

        return compare

    return decorate


def numpy_cupy_raises(
    name: str = "xp", sp_name: str | None = None, scipy_name: str | None = None, accept_error: Any = Exception
) -> Decorator:
    """Require that both runs raise errors of the same type."""
    warnings.warn("cupy.testing.numpy_cupy_raises is deprecated.", DeprecationWarning, stacklevel=2)

    def decorate(test: Callable[..., Any]) -> Any:
        @giving(test, name, sp_name, scipy_name)
        def compare(*args: Any, **kwargs: Any) -> None:
            _require_same_error(*_run_both(test, args, kwargs, name, sp_name, scipy_name), accept_error)

        return compare

    return decorate
