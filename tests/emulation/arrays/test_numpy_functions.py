"""Functions of NumPy that are called with emulated arrays."""

from __future__ import annotations

import numpy as np
import pytest

from support.emulated_arrays import assert_same_array, numbers
from tcuda.emulation import xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def test_ufuncs_of_numpy_run_on_the_device():
    host = numbers("d")
    array, out = xp.asarray(host), xp.zeros((3, 4))
    assert_same_array(np.add(array, 1), host + 1)
    assert np.multiply(array, array, out=out) is out
    assert_same_array(out, host * host)
    assert_same_array(np.add.reduce(array), np.add.reduce(host))
    assert_same_array(np.multiply.reduce(array, axis=1, keepdims=True), np.multiply.reduce(host, axis=1, keepdims=True))
    nothing = xp.zeros(0)  # NumPy before 2.5 keeps a reference to the operand of a reduction that is refused
    with pytest.raises(NotImplementedError, match="`maximum.reduce` is not supported, as in CuPy"):
        np.maximum.reduce(nothing)
    assert_same_array(np.add.accumulate(array, axis=1), np.add.accumulate(host, axis=1))
    assert_same_array(np.multiply.outer(array[0], array[1]), np.multiply.outer(host[0], host[1]))
    assert_same_array(np.add.reduceat(array, [0, 2], axis=0), np.add.reduceat(host, [0, 2], axis=0))
    assert_same_array(np.add(array, 1, dtype="f"), np.add(host, 1, dtype="f"))
    with pytest.raises(TypeError, match="Wrong arguments"):  # CuPy's ufuncs have no mask
        np.add(array, 1, out=out, where=array > 2)
    total = xp.zeros(4)
    assert np.add.reduce(array, out=total) is total
    assert_same_array(total, host.sum(axis=0))
    first, second = xp.zeros((3, 4)), xp.zeros((3, 4))
    assert np.modf(array / 4, out=(first, second))[1] is second
    assert_same_array(first, np.modf(host / 4)[0])


def test_ufunc_at_counts_repeated_indices():
    array, host = xp.zeros(4), np.zeros(4)
    np.add.at(array, [0, 0, 2], 1.5)
    np.add.at(array, xp.asarray([3, 3]), xp.asarray([1.0, 2.0]))
    np.add.at(host, [0, 0, 2], 1.5)
    np.add.at(host, [3, 3], [1.0, 2.0])
    assert_same_array(array, host)
    xp.maximum.at(array, slice(1, 3), 2)
    assert array.tolist() == [3, 2, 2, 3]


def test_ufuncs_and_arguments_that_cupy_lacks_are_refused():
    with pytest.raises(TypeError, match="returned NotImplemented"):
        np.spacing(xp.ones(2))
    with pytest.raises(TypeError, match="Wrong arguments"):
        np.add(xp.ones(2), 1, subok=False)
    with pytest.raises(TypeError, match="Wrong number of arguments"):
        xp.add(xp.ones(2))
    with pytest.raises(ValueError, match="both a positional and keyword"):
        xp.negative(xp.ones(2), xp.ones(2), out=xp.ones(2))


def test_named_tuples_of_arrays_can_be_arguments():
    array = xp.asarray(numbers("d", (3, 3)))
    factors = xp.linalg.qr(array)
    assert_same_array(np.stack(factors), np.stack([factor.get() for factor in factors]))


def test_functions_of_numpy_run_on_the_device():
    host = numbers("d")
    array = xp.asarray(host)
    assert_same_array(np.concatenate([array, array]), np.concatenate([host, host]))
    assert_same_array(np.sum(array, axis=0), host.sum(axis=0))
    assert_same_array(np.zeros_like(array), np.zeros_like(host))
    assert_same_array(np.where(array > 0, array, 0), np.where(host > 0, host, 0))
    assert_same_array(np.linalg.norm(array), np.linalg.norm(host))
    assert_same_array(np.fft.fft(array), np.fft.fft(host))
    assert np.shape(array) == (3, 4)
    assert np.reshape(array, -1).base is array
    with pytest.raises(TypeError, match="not an object of <class 'numpy.ndarray'>"):
        np.concatenate([array, host])
    with pytest.raises(TypeError, match="no implementation found"):
        np.insert(array, 0, 1)
