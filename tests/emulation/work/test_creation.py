"""The creation of emulated arrays, and their conversion to and from arrays, files and texts of the host."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from support.devices import allocated
from support.emulated_arrays import assert_same
from tcuda.emulation import xp
from tcuda.emulation.runtime import costs

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


# Creation


def test_a_range_may_stop_above_the_integers_of_64_bits():
    start = 2**63 - 1
    assert_same(xp.arange(start, start + 3, dtype="u8"), np.arange(start, start + 3, dtype="u8"))


@pytest.mark.parametrize("dtype", [None, "?", "i", np.float32, "complex64"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_made_from_a_shape(dtype, order):
    options = {} if dtype is None else {"dtype": dtype}
    for name, args in (("zeros", ((2, 3),)), ("ones", (4,)), ("full", ((2, 3), 2))):
        made, expected = getattr(xp, name)(*args, **options, order=order), getattr(np, name)(*args, **options)
        assert_same(made, expected)
        assert made.flags[f"{order}_CONTIGUOUS"]
    made = xp.empty((2, 3), order=order, **options)
    assert (made.shape, made.dtype, made.flags[f"{order}_CONTIGUOUS"]) == ((2, 3), np.dtype(dtype), True)


def test_full_takes_the_dtype_of_its_value():
    assert_same(xp.full(2, 3), np.full(2, 3))
    assert_same(xp.full(2, np.float32(3)), np.full(2, np.float32(3)))
    assert_same(xp.full(2, xp.asarray(1.5, dtype="e")), np.full(2, 1.5, "e"))
    with pytest.raises(ValueError, match="cannot be used for fill"):
        xp.zeros(2).fill(xp.ones(2))


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like", "full_like"])
@pytest.mark.parametrize(
    "options", [{}, {"dtype": "i"}, {"order": "C"}, {"order": "F"}, {"order": "A"}, {"shape": (2, 5)}], ids=str
)
def test_arrays_are_made_like_other_arrays(name, options):
    host = np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2)
    array = xp.asarray(np.arange(24.0).reshape(2, 3, 4)).transpose(1, 0, 2)
    args = (3,) if name == "full_like" else ()
    made, expected = getattr(xp, name)(array, *args, **options), getattr(np, name)(host, *args, **options)
    assert (made.shape, made.dtype, made.strides) == (expected.shape, expected.dtype, expected.strides)
    if name != "empty_like":
        np.testing.assert_array_equal(made.get(), expected)
    with pytest.raises(TypeError, match="subok"):
        getattr(xp, name)(array, *args, subok=True)


@pytest.mark.parametrize(
    "value",
    [5, 2.5, True, 1j, [1, 2], [[1.5], [2.5]], (), np.arange(6).reshape(2, 3).T, np.array(3, "e"), range(3), []],
    ids=repr,
)
def test_arrays_are_made_from_values_of_the_host(value):
    for function in (xp.array, xp.asarray, xp.asanyarray):
        assert_same(function(value), np.array(value))
        assert_same(function(value, dtype="f") if np.asarray(value).dtype != complex else function(value),
                    np.array(value, dtype="f") if np.asarray(value).dtype != complex else np.array(value))  # fmt: skip


def test_arrays_are_made_from_sequences_of_arrays():
    a, b = xp.arange(3), xp.ones(3)
    assert_same(xp.array([a, b]), np.array([np.arange(3), np.ones(3)]))
    assert_same(xp.array([[a[0], a[1]], [b[1], b[2]]]), np.array([[0, 1.0], [1, 1]]))
    for mixed in ([[a[0], 5], [b[1], 6.5]], [a, [1, 2, 3]], [a, np.ones(3)]):
        with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
            xp.array(mixed)
    assert_same(xp.array([a, a], dtype="f", order="F"), np.array([[0, 1, 2]] * 2, "f"))


def test_array_copies_unless_copy_is_false():
    array = xp.arange(6).reshape(2, 3)
    assert not xp.shares_memory(xp.array(array), array)
    assert not xp.shares_memory(xp.copy(array), array)
    assert xp.asarray(array) is array
    assert xp.array(array, copy=False) is array
    assert xp.asarray(array, order="F") is not array
    assert xp.ascontiguousarray(array) is array
    assert xp.asfortranarray(array).flags.fnc
    assert xp.ascontiguousarray(xp.asarray(3)).shape == (1,)
    assert xp.array(array, ndmin=3).shape == (1, 2, 3)
    assert xp.array(array.T).flags.fnc
    assert xp.array(array.T, order="C").flags.c_contiguous
    assert xp.astype(array, "f").dtype == np.float32
    assert xp.astype(array, array.dtype, copy=False) is array
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        xp.array(array, dtype="f", copy=False)
    with pytest.raises(NotImplementedError):
        xp.array(array, subok=True)


@pytest.mark.parametrize("value", [["a", "b"], [None], np.zeros(2, "g"), np.array(["2020"], "M8[Y]")], ids=repr)
def test_dtypes_without_kernels_are_refused(value):
    before = allocated()
    with pytest.raises(ValueError, match="Unsupported dtype"):
        xp.array(value)
    assert allocated() == before


def test_big_endian_arrays_are_converted():
    assert_same(xp.asarray(np.arange(3, dtype=">i4")), np.arange(3, dtype="i4"))


def test_making_an_array_takes_the_time_of_its_copy(runtime):
    host = np.zeros(1 << 20, np.uint8)
    runtime.deviceSynchronize()
    runtime.sleep(1_000_000, 0)
    ready = runtime.devices[0].default.ready
    array = xp.asarray(host)
    assert runtime.devices[0].default.ready - ready == costs.copy_to_or_from_host(1 << 20, pinned=False)
    assert runtime.clock.now() < ready
    xp.asarray(host, blocking=True)
    assert runtime.clock.now() > ready
    del array


# The host


def test_asnumpy_takes_arrays_and_sequences():
    array = xp.arange(6).reshape(2, 3)
    assert isinstance(xp.asnumpy(array), np.ndarray)
    assert xp.asnumpy(array.T, order="A").flags.fnc
    out = np.zeros((2, 3), int)
    assert xp.asnumpy(array, out=out) is out
    assert out.tolist() == array.tolist()
    assert xp.asnumpy([1, 2]).tolist() == [1, 2]
    assert xp.asnumpy([[1, 1, 1]] * 2, out=out) is out
    assert out.tolist() == [[1, 1, 1]] * 2


def test_get_array_module_returns_the_module_of_an_array():
    assert xp.get_array_module(np.ones(2), xp.ones(2)) is importlib.import_module("tcuda.emulation.xp")
    assert xp.get_array_module(np.ones(2), 3) is np


def test_arrays_are_saved_to_files_and_loaded(tmp_path):
    array = xp.asarray(np.random.default_rng(0).standard_normal((3, 4)))
    xp.save(tmp_path / "one.npy", array)
    assert_same(xp.load(tmp_path / "one.npy"), array.get())
    for save in (xp.savez, xp.savez_compressed):
        save(tmp_path / "two.npz", first=array, second=array[0])
        loaded = xp.load(tmp_path / "two.npz")
        assert sorted(loaded) == ["first", "second"]
        assert_same(loaded["second"], array[0].get())
    xp.savetxt(tmp_path / "text", array)
    assert_same(xp.loadtxt(tmp_path / "text"), array.get())
    assert_same(xp.genfromtxt(tmp_path / "text"), array.get())
    array.tofile(tmp_path / "bytes")
    assert_same(xp.fromfile(tmp_path / "bytes"), array.ravel().get())


def test_arrays_are_made_from_buffers_iterators_and_functions():
    assert_same(xp.frombuffer(b"\1\2", dtype="B"), np.array([1, 2], "B"))
    assert_same(xp.fromiter(iter([1, 2]), dtype="i"), np.array([1, 2], "i"))
    assert_same(xp.fromfunction(lambda i, j: i + j, (2, 2)), np.fromfunction(lambda i, j: i + j, (2, 2)))
    assert_same(xp.fromstring("1 2", sep=" "), np.array([1.0, 2.0]))


def test_arrays_are_written_as_text():
    array = xp.arange(3)
    assert xp.array_repr(array) == repr(array) == "array([0, 1, 2])"
    assert xp.array_str(array) == str(array) == xp.array2string(array) == "[0 1 2]"
    assert xp.format_float_positional(xp.asarray(1.5)) == "1.5"
    assert xp.format_float_scientific(xp.asarray(1.5)) == "1.5e+00"
