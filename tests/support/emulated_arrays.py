"""Comparisons of arrays of emulated devices with arrays of NumPy."""

from __future__ import annotations

import contextlib

import numpy as np

from tcuda.emulation import ndarray


def numbers(dtype, shape=(3, 4)):
    """Return small numbers other than zero; some are negative if the dtype has negative numbers."""
    size = int(np.prod(shape))
    values = np.arange(1, size + 1).reshape(shape)
    if np.dtype(dtype).kind in "if":
        values = values * np.where(values % 3 == 0, -1, 1)
    return values.astype(dtype)


def assert_same_array(actual, expected):
    """Check that ``actual`` is an array of a device with the dtype, shape and elements of ``expected``."""
    assert isinstance(actual, ndarray), type(actual)
    assert actual.dtype == np.asarray(expected).dtype
    assert actual.shape == np.shape(expected)
    np.testing.assert_array_equal(actual.get(), expected)


def assert_same(actual, expected):
    """Check that ``actual`` has the containers of ``expected``, and equal arrays of a device in them."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        assert isinstance(actual, (tuple, list))
        if hasattr(actual, "_fields"):  # the tuples of CuPy's linear algebra have no names for their parts
            assert actual._fields == expected._fields
        for part, wanted in zip(actual, expected, strict=True):
            assert_same(part, wanted)
        return
    assert_same_array(actual, expected)


@contextlib.contextmanager
def on_device(runtime, index):
    """Make ``index`` the current device in a scope."""
    previous = runtime.getDevice()
    runtime.setDevice(index)
    try:
        yield
    finally:
        runtime.setDevice(previous)
