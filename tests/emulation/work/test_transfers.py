"""Copies of emulated arrays between the host and devices, and between devices."""

from __future__ import annotations

import copy
import operator
import pickle
import types

import numpy as np
import pytest

from support.devices import allocated
from support.emulated_arrays import assert_same_array, numbers, on_device
from support.emulated_streams import temporary_stream
from tcuda.emulation import xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]
MILLISECOND = 1_000_000


# Devices


def test_arrays_of_another_device_are_refused(runtime):
    here = xp.ones(3)
    with on_device(runtime, 1):
        there = xp.ones(3)
        message = "Array device must be same as the current device: array device = 0 while current = 1"
        for function in (
            lambda: here + 1,
            lambda: here + there,
            lambda: there + here,
            lambda: xp.sum(here),
            lambda: here.sum(),
            lambda: xp.concatenate([there, here]),
            lambda: np.add(there, 1, out=here),
            lambda: there.max(0, here[0]),
            lambda: here.fill(1),
            lambda: here.sort(),
            lambda: operator.setitem(here, 0, 1),
            lambda: operator.setitem(there, ..., here[:1]),
            lambda: there[here > 0],
            lambda: here.astype("f"),
            lambda: here.take([0]),
            lambda: here[::-1].ravel(),
        ):
            with pytest.raises(ValueError) as raised:  # noqa: PT011
                function()
            assert str(raised.value) == message
    assert here.tolist() == there.tolist() == [1, 1, 1]


def test_views_and_copies_to_the_host_work_from_any_device(runtime):
    array = xp.arange(6.0).reshape(2, 3)
    with on_device(runtime, 1):
        assert array[1].T.reshape(3, 1)[::2].tolist() == [[3], [5]]
        assert array[2:].base is array.base
        assert repr(array.T) == repr(array.get().T)
        array.set(np.zeros((2, 3)))
        assert runtime.getDevice() == 1
    assert array.sum().item() == 0


@pytest.mark.parametrize(
    "copying", [xp.array, xp.asarray, xp.copy, lambda array: array.copy(), copy.copy, lambda a: xp.array(a, "f")]
)
@pytest.mark.parametrize("view", [lambda array: array, lambda array: array.T, lambda array: array[:, ::2]])
def test_copies_go_to_the_current_device(runtime, copying, view):
    array = view(xp.arange(12.0).reshape(3, 4))
    runtime.deviceSynchronize()
    with on_device(runtime, 1):
        copied = copying(array)
        assert copied.device.id == 1
        assert copied.get().tolist() == array.tolist()
        assert (copied + 1).device.id == 1
        assert copy.deepcopy(array).device.id == 0
    assert array.device.id == 0


def test_an_array_dies_on_its_own_device(runtime):
    before = allocated()
    with on_device(runtime, 1):
        array = xp.ones(1000)
    assert allocated()[1] == before[1] + 8192
    del array
    assert allocated() == before


# Between host and device


@pytest.mark.parametrize(
    "read",
    [
        lambda array: array.get(),
        lambda array: array[0].item(),
        lambda array: array.tolist(),
        lambda array: array.tobytes(),
        lambda array: float(array[0]),
        lambda array: bool(array[0] == 0),
        repr,
        str,
        lambda array: array.__dlpack__(dl_device=(1, 0)),
        pickle.dumps,
    ],
)
def test_reading_waits_for_the_current_stream_and_writing_does_not(runtime, read):
    array = xp.zeros(3)
    start = runtime.clock.now()
    runtime.sleep(MILLISECOND, 0)
    array.set(np.ones(3))
    array += 1
    array[1:].sum()
    assert runtime.clock.now() < start + MILLISECOND
    read(array)
    assert runtime.clock.now() >= start + MILLISECOND


def test_get_and_set_use_the_given_stream(runtime, backend):
    array, other = xp.zeros(3), xp.zeros(3)
    runtime.deviceSynchronize()
    with temporary_stream(runtime) as stream:
        start = runtime.clock.now()
        runtime.sleep(MILLISECOND, stream.ptr)
        array.set(np.ones(3), stream=types.SimpleNamespace(ptr=stream.ptr))
        other.get()
        assert runtime.clock.now() < start + MILLISECOND
        assert array.get(stream).tolist() == [1, 1, 1]
        assert runtime.clock.now() >= start + MILLISECOND
    assert backend.current_stream().ptr == 0


def test_a_copy_to_pinned_memory_need_not_block_the_host(runtime):
    array, out = xp.arange(3), np.zeros(3, int)
    runtime.hostRegister(out.ctypes.data, out.nbytes, 0)
    start = runtime.clock.now()
    runtime.sleep(MILLISECOND, 0)
    assert array.get(out=out, blocking=False) is out
    assert runtime.clock.now() < start + MILLISECOND
    array.get(out=out)
    assert runtime.clock.now() >= start + MILLISECOND
    runtime.hostUnregister(out.ctypes.data)
    assert out.tolist() == [0, 1, 2]


@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize(
    "view", [lambda a: a, lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::-1], lambda a: a[0, 0]]
)
def test_get_returns_the_given_order(view, order):
    host = numbers("f")
    array = view(xp.asarray(host))
    got = array.get(order=order)
    np.testing.assert_array_equal(got, view(host))
    expected = np.empty_like(view(host), order="F" if array.flags.fnc else "C") if order == "A" else None
    wanted = expected if expected is not None else np.empty(got.shape, order=order)
    assert (got.flags.c_contiguous, got.flags.f_contiguous) == (wanted.flags.c_contiguous, wanted.flags.f_contiguous)
    out = np.empty(got.shape, "f", order="F")
    assert array.get(out=out) is out
    np.testing.assert_array_equal(out, view(host))


def test_get_and_set_refuse_arrays_that_do_not_fit():
    array = xp.zeros((2, 3), "f")
    for bad, error, message in (
        (np.zeros((2, 3)), TypeError, "float64 array cannot be set to float32 array"),
        (np.zeros((3, 2), "f"), ValueError, r"Shape mismatch. Old shape: \(2, 3\), new shape: \(3, 2\)"),
        ([[0] * 3] * 2, TypeError, "Only numpy.ndarray can be set"),
        (array, TypeError, "Only numpy.ndarray can be set"),
    ):
        with pytest.raises(error, match=message):
            array.set(bad)
    with pytest.raises(RuntimeError, match="Cannot set to non-contiguous array"):
        array[:, ::2].set(np.zeros((2, 2), "f"))
    for bad, error, message in (
        (np.zeros((2, 3)), TypeError, "float64 array cannot be obtained from float32 array"),
        (np.zeros((3, 2), "f"), ValueError, "Shape mismatch. Expected shape"),
        ([], TypeError, "Only numpy.ndarray can be obtained"),
        (np.zeros((2, 6), "f")[:, ::2], RuntimeError, "non-contiguous"),
    ):
        with pytest.raises(error, match=message):
            array.get(out=bad)
    with pytest.raises(ValueError, match="unsupported order"):
        array.get(order="X")


def test_set_keeps_the_layout():
    array = xp.zeros((2, 3), order="F")
    array.set(np.arange(6.0).reshape(2, 3))
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert array.T.ravel().tolist() == [0, 3, 1, 4, 2, 5]


def test_arrays_of_one_element_convert_to_scalars():
    assert xp.asarray([[2.5]]).item() == 2.5
    assert int(xp.asarray(3)) == 3
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j
    assert f"{xp.asarray(2.5):.2f}" == "2.50"
    assert bytes(xp.arange(2, dtype="B")) == b"\0\1"
    assert xp.asarray(numbers("h")).T.tobytes() == numbers("h").T.tobytes()
    assert bool(xp.ones((1, 1))) is True
    with pytest.raises(ValueError, match="size 1"):
        xp.ones(2).item()
    with pytest.raises(ValueError, match="more than one element is ambiguous"):
        bool(xp.ones(2))
    with pytest.warns(DeprecationWarning, match="empty array is ambiguous"):
        assert not bool(xp.ones(0))
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):  # CuPy's arrays refuse it as well
        operator.index(xp.asarray(3))


def test_nothing_is_converted_to_numpy_implicitly(tmp_path):
    array = xp.ones(3)
    message = r"Implicit conversion to a NumPy array is not allowed. Please use `.get\(\)`"
    for function in (
        np.asarray,
        np.array,
        lambda array: np.array([array, array]),
        lambda array: np.zeros(3).dot(array),
    ):
        with pytest.raises(TypeError, match=f"{message}|Unsupported type"):
            function(array)
    with pytest.raises(TypeError, match=message):
        np.zeros(3)[:] = array
    np.save(tmp_path / "x.npy", array)  # CuPy has a function of this name
    assert np.load(tmp_path / "x.npy").tolist() == [1, 1, 1]


def test_arrays_can_be_pickled_and_copied_but_not_hashed(tmp_path):
    array = xp.asarray(numbers("f")).T
    for copied in (pickle.loads(pickle.dumps(array)), pickle.loads(array.dumps()), copy.copy(array)):
        assert_same_array(copied, array.get())
        assert not xp.shares_memory(copied, array)
    assert pickle.loads(pickle.dumps(array)).flags.f_contiguous
    with (tmp_path / "dump").open("w+b") as file:
        array.dump(file)
        file.seek(0)
        assert_same_array(pickle.load(file), array.get())
        file.seek(0)
        array.tofile(file)
    assert (tmp_path / "dump").read_bytes().startswith(array.tobytes())
    with pytest.raises(TypeError, match="unhashable"):
        hash(array)
