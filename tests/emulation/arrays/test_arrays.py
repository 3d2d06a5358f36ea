"""Emulated arrays: their attributes, their methods and their memory layout."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from support.emulated_arrays import assert_same_array, numbers, on_device
from tcuda.emulation import ndarray, xp
from tcuda.emulation.names import tensor_names

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]


def test_attributes_are_those_of_numpy():
    host = numbers("f", (2, 3, 4)).transpose(2, 0, 1)
    array = xp.asarray(numbers("f", (2, 3, 4))).transpose(2, 0, 1)
    for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides"):
        assert getattr(array, name) == getattr(host, name), name
    for flag in ("c_contiguous", "f_contiguous", "owndata", "fnc", "forc"):
        assert getattr(array.flags, flag) == getattr(host.flags, flag), flag
    assert array.flags["C_CONTIGUOUS"] is False
    assert xp.zeros(3).flags["OWNDATA"]


def test_flags_are_those_of_cupy():
    flags = xp.zeros((2, 3)).flags
    assert repr(flags) == "  C_CONTIGUOUS : True\n  F_CONTIGUOUS : False\n  OWNDATA : True"
    for name in ("C", "FNC", "WRITEABLE"):
        with pytest.raises(KeyError, match=f"{name} is not defined for cupy.ndarray.flags"):
            flags[name]
    for name in ("c_contiguous", "f_contiguous", "owndata", "fnc", "forc"):
        with pytest.raises(AttributeError):
            setattr(flags, name, True)


def test_an_array_has_its_address_and_its_device(runtime):
    array = xp.zeros((4, 4))
    assert runtime.pointerGetDevice(array.data.ptr) == 0
    assert int(array[1:].data) == array.data.ptr + array.strides[0]
    assert array[::-1].data.ptr == array.data.ptr + 3 * array.strides[0]
    with on_device(runtime, 1):
        other = xp.zeros(3)
    assert (str(other.device), other.data.device_id, other.data.device.id) == ("<CUDA Device 1>", 1, 1)
    assert runtime.pointerGetDevice(other.data.ptr) == 1


def test_an_array_has_no_interface_for_readers_of_host_memory():
    array = xp.ones(3)
    assert not hasattr(array, "__array_interface__")
    with pytest.raises(TypeError):
        memoryview(array)


METHODS = [
    ("all", (), {}),
    ("any", (), {"axis": 0, "keepdims": True}),
    ("argmax", (), {"axis": 1}),
    ("argmin", (1,), {}),
    ("argpartition", (1,), {"axis": 0}),
    ("argsort", (0,), {}),
    ("astype", ("f",), {}),
    ("byteswap", (), {}),
    ("clip", (2,), {"max": 6}),
    ("compress", ([True, False, True],), {"axis": 0}),
    ("conj", (), {}),
    ("conjugate", (), {}),
    ("copy", (), {}),
    ("cumprod", (), {"axis": 0}),
    ("cumsum", (1,), {}),
    ("diagonal", (1,), {}),
    ("flatten", (), {}),
    ("flatten", ("F",), {}),
    ("max", (), {"axis": 1, "keepdims": True}),
    ("mean", (0,), {}),
    ("min", (), {}),
    ("prod", (), {"axis": (0, 1)}),
    ("ravel", ("F",), {}),
    ("repeat", (2,), {"axis": 1}),
    ("reshape", (2, 6), {}),
    ("reshape", ((6, -1),), {"order": "F"}),
    ("round", (1,), {}),
    ("squeeze", (), {}),
    ("std", (), {"axis": 0, "ddof": 1}),
    ("sum", (1,), {"dtype": "f"}),
    ("swapaxes", (0, 1), {}),
    ("take", ([2, 0],), {"axis": 1}),
    ("trace", (), {}),
    ("transpose", (), {}),
    ("transpose", (1, 0), {}),
    ("transpose", ((1, 0),), {}),
    ("var", (), {}),
    ("view", ("q",), {}),
    ("view", ("f",), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), METHODS, ids=lambda value: str(value))
def test_methods_give_the_results_of_numpy(name, args, kwargs):
    host = numbers("d")
    assert_same_array(getattr(xp.asarray(host), name)(*args, **kwargs), getattr(host, name)(*args, **kwargs))


def test_methods_that_take_arrays_give_the_results_of_numpy():
    host, places = numbers("d"), np.array([2, 0, 1])
    array = xp.asarray(host)
    assert_same_array(array.dot(array.T), host.dot(host.T))
    assert_same_array(xp.asarray(places).choose(array[:, :3]), places.choose(host[:, :3]))
    assert_same_array(xp.arange(5).searchsorted(xp.asarray(places)), np.arange(5).searchsorted(places))
    assert_same_array(array.ptp(), np.ptp(host))
    for actual, expected in zip((array > 3).nonzero(), (host > 3).nonzero(), strict=True):
        assert_same_array(actual, expected)


def test_methods_that_write_give_the_results_of_numpy():
    for name, args in (("sort", (0,)), ("partition", (1,)), ("fill", (7,)), ("put", ([0, 5], [1.5, 2.5]))):
        host = numbers("d")
        array = xp.asarray(host)
        assert getattr(array, name)(*args) is None
        getattr(host, name)(*args)
        assert_same_array(array, host)


def test_reductions_give_arrays_without_axes():
    array = xp.arange(4.0)
    for result in (array.sum(), array.max(), array.argmax(), array.mean(), array.all(), array[2], array @ array):
        assert isinstance(result, ndarray)
        assert result.shape == ()


def test_results_go_to_out_given_by_name_and_by_position():
    array, out = xp.arange(6.0).reshape(2, 3), xp.zeros(3)
    assert array.sum(axis=0, out=out) is out
    assert out.tolist() == [3, 5, 7]
    assert array.max(0, out) is out
    assert out.tolist() == [3, 4, 5]
    assert array.T.dot(xp.ones(2), out) is out
    assert out.tolist() == [3, 5, 7]
    with pytest.raises(TypeError, match="Unsupported type"):
        array.sum(axis=0, out=np.zeros(3))


def test_astype_and_copy_keep_or_change_the_layout():
    array = xp.asarray(numbers("d")).T
    assert array.astype("f").flags.f_contiguous
    assert array.astype("f", order="C").flags.c_contiguous
    assert array.copy().flags.c_contiguous
    assert array.copy("K").flags.f_contiguous
    assert array.astype("d", copy=False) is array
    assert array.astype("d") is not array
    with pytest.raises(TypeError, match="casting is not supported yet"):
        array.astype("f", casting="safe")
    with pytest.warns(np.exceptions.ComplexWarning):
        xp.ones(2, "D").astype("d")


def test_the_shape_can_be_set_where_no_copy_is_needed():
    array = xp.arange(6)
    array.shape = (2, -1)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    transposed = array.T
    with pytest.raises(AttributeError, match="incompatible shape"):
        transposed.shape = (6,)
    with pytest.raises(ValueError, match="Unable to avoid"):
        transposed.reshape(6, copy=False)
    copied = array.reshape(6, copy=True)
    copied[0] = 9
    assert array[0, 0] == 0


def test_the_constructor_makes_an_array_in_given_memory():
    array = xp.arange(6, dtype="i")
    rows = ndarray((3,), "i", array.data, (8,))
    assert rows.tolist() == [0, 2, 4]
    assert ndarray(2, "i", array[4:].data).tolist() == [4, 5]
    assert ndarray((2, 3), order="F").flags.fnc
    assert ndarray((2, 3), order="f").flags.fnc
    assert ndarray((2, 3), order="c").flags.c_contiguous
    assert ndarray(array.data.mem.size // 4, "i", array.data)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match="buffer is too small"):
        ndarray(array.data.mem.size // 4 + 1, "i", array.data)
    with pytest.raises(ValueError, match="Negative dimensions"):
        ndarray((-1, 2))
    with pytest.raises(ValueError, match="order not understood"):
        ndarray(2, order="K")
    for dtype in ("O", "U3", "g", "M8[s]", ">i4"):
        with pytest.raises(ValueError, match="Unsupported dtype"):
            ndarray(2, dtype)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("cuda", r"xp\.asarray\(host\) copies"),
        ("to", r"x\.astype\(dtype\) changes the type"),
        ("cpu", r"x\.get\(\)"),
        ("clone", r"x\.copy\(\)"),
        ("requires_grad", "computes no gradients"),
        ("unsqueeze", r"xp\.expand_dims\(x, axis\)"),
        ("sqrt", r"xp\.sqrt\(\) is a function\."),
        ("add_", "xp.add.. is a function, and out=x writes to the array"),
        ("abs", r"xp\.absolute\(\)"),
        ("median", r"xp\.median\(\)"),
    ],
)
def test_a_name_of_torchs_tensors_says_what_to_write(name, instead):
    array = xp.zeros(3)
    with pytest.raises(AttributeError, match=f"'ndarray' object has no attribute '{name}'.*{instead}") as caught:
        getattr(array, name)
    assert caught.value.name == name
    assert not hasattr(array, name)
    caught.value.obj = None  # the error keeps the array


@pytest.mark.parametrize("name", ["anything", "_cuda", "__len_hint__", "sqrt2_"])
def test_other_names_have_no_advice(name):
    with pytest.raises(AttributeError, match=f"^'ndarray' object has no attribute '{name}'$"):
        getattr(xp.zeros(3), name)


@pytest.mark.parametrize(
    ("call", "kind", "instead"),
    [
        (lambda: xp.tensor([1]), AttributeError, r"torch: write xp\.array\(\)\."),
        (lambda: xp.from_numpy(np.ones(3)), AttributeError, r"torch: write xp\.asarray\(\)\."),
        (lambda: xp.cat([]), AttributeError, r"torch: write xp\.concatenate\(\)\."),
        (lambda: xp.randn(3), AttributeError, r"torch: write xp\.random\.randn\(\)\."),
        (lambda: xp.zeros(3).sum(dim=0), TypeError, "CuPy's name is axis"),
        (lambda: xp.sum(xp.zeros(3), axis=0, keepdim=True), TypeError, "CuPy's name is keepdims"),
        (lambda: xp.arange(3, device="cuda:1"), TypeError, r"with tcuda\.device\(1\):"),
        (lambda: xp.zeros(3).device.index, AttributeError, r"tcuda\.device_of\(x\)\.idx is"),
        (lambda: xp.zeros(3).device.type, AttributeError, "every array is on a CUDA device"),
    ],
)
def test_a_habit_of_torch_says_what_to_write(call, kind, instead):
    with pytest.raises(kind, match=instead):
        call()


@pytest.mark.parametrize("path", [*tensor_names._FUNCTIONS.values()])
def test_every_function_that_an_advice_names_is_there(path):
    assert callable(functools.reduce(getattr, path.split("."), xp))


def test_every_function_with_advice_is_one_that_the_library_lacks():
    assert not [name for name in tensor_names._FUNCTIONS if name in dir(xp)]


def test_every_name_with_advice_is_one_that_arrays_lack():
    assert not [name for name in tensor_names._INSTEAD if hasattr(ndarray, name)]


def test_a_property_that_fails_keeps_its_own_error():
    class Mesh(ndarray):
        @property
        def spacing(self):
            return None.missing

    made = Mesh(3)
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'missing'"):
        made.spacing  # noqa: B018
