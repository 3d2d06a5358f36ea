"""Arrays of emulated devices: what NumPy's arrays do, on memory that the device accounts for."""

from __future__ import annotations

import contextlib
import copy
import gc
import operator
import pickle
import threading
import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tcuda
import tcuda.emulation
from support.devices import allocated
from tcuda._errors import AcceleratorError, OutOfMemoryError
from tcuda._ledger import size_text
from tcuda._runtime.emulated import costs
from tcuda._runtime.protocol import CAPTURE_GLOBAL, CAPTURE_RELAXED, CAPTURE_THREAD_LOCAL, STREAM_NON_BLOCKING
from tcuda.emulation import ndarray, xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

DTYPES = ["?", "b", "B", "h", "i", "q", "Q", "e", "f", "d", "F", "D"]
MILLISECOND = 1_000_000
thorough = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@contextlib.contextmanager
def on_device(runtime, index):
    previous = runtime.getDevice()
    runtime.setDevice(index)
    try:
        yield
    finally:
        runtime.setDevice(previous)


@contextlib.contextmanager
def new_stream(runtime):
    handle = runtime.streamCreateWithPriority(STREAM_NON_BLOCKING, 0)
    stream = types.SimpleNamespace(ptr=handle, device_id=runtime.getDevice())
    try:
        yield stream
    finally:
        runtime.streamDestroy(handle)


def numbers(dtype, shape=(3, 4)):
    """Return small numbers of which none is zero, some negative where the dtype has negative numbers."""
    size = int(np.prod(shape))
    values = np.arange(1, size + 1).reshape(shape)
    if np.dtype(dtype).kind in "if":
        values = values * np.where(values % 3 == 0, -1, 1)
    return values.astype(dtype)


def assert_same(actual, expected):
    assert isinstance(actual, ndarray)
    assert actual.dtype == np.asarray(expected).dtype
    assert actual.shape == np.shape(expected)
    np.testing.assert_array_equal(actual.get(), expected)


# Operators

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
]
UNARY = [operator.neg, operator.pos, operator.abs, operator.invert]


def either(function, *operands):
    """Return what ``function`` returns, or the type of what it raises."""
    with np.errstate(all="ignore"):
        try:
            return function(*operands)
        except (TypeError, ValueError) as error:
            return TypeError if isinstance(error, TypeError) else ValueError


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", [*BINARY, divmod], ids=lambda function: function.__name__)
def test_binary_operators_do_as_numpy(function, dtype):
    left, right = numbers(dtype), numbers(dtype, (4,))[::-1].copy()
    expected = either(function, left, right)
    actual = either(function, xp.asarray(left), xp.asarray(right))
    if isinstance(expected, type):
        assert actual is expected
    elif isinstance(expected, tuple):
        for part, wanted in zip(actual, expected, strict=True):
            assert_same(part, wanted)
    else:
        assert_same(actual, expected)


@pytest.mark.parametrize("scalar", [2, 2.5, True, 1 + 2j, np.float32(3), np.int8(-3), np.float64(1.5)], ids=repr)
@pytest.mark.parametrize("function", [*BINARY, divmod], ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", ["i", "f"])
def test_scalars_on_either_side_do_as_numpy(function, scalar, dtype):
    host = np.abs(numbers(dtype))
    array = xp.asarray(host)
    for actual, expected in (
        (either(function, array, scalar), either(function, host, scalar)),
        (either(function, scalar, array), either(function, scalar, host)),
    ):
        if isinstance(expected, type):
            assert actual is expected
        elif isinstance(expected, tuple):
            for part, wanted in zip(actual, expected, strict=True):
                assert_same(part, wanted)
        else:
            assert_same(actual, expected)


@pytest.mark.parametrize("function", UNARY, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", ["b", "i", "f", "D"])
def test_unary_operators_do_as_numpy(function, dtype):
    host = numbers(dtype)
    expected = either(function, host)
    actual = either(function, xp.asarray(host))
    if isinstance(expected, type):
        assert actual is expected
    else:
        assert_same(actual, expected)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"])
def test_in_place_operators_write_to_the_same_memory(name):
    host = numbers("d")
    array = xp.asarray(host)
    alias, address = array, array.data.ptr
    array = getattr(operator, name)(array, 3)
    assert array is alias
    assert array.data.ptr == address
    assert_same(array, getattr(operator, name)(host, 3))


@pytest.mark.parametrize("name", ["iand", "ior", "ixor", "ilshift", "irshift"])
def test_in_place_operators_on_bits_write_to_the_same_memory(name):
    host = numbers("q")
    array = alias = xp.asarray(host)
    array = getattr(operator, name)(array, xp.asarray(3))
    assert array is alias
    assert_same(array, getattr(operator, name)(host, 3))


def test_in_place_operators_refuse_what_the_dtype_cannot_hold():
    array = xp.arange(3)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output"):
        array += 0.5
    with pytest.raises(ValueError, match="broadcast"):
        array += xp.ones((2, 3), int)
    assert array.tolist() == [0, 1, 2]


def test_matmul_does_as_numpy():
    left, right = numbers("f", (2, 3, 4)), numbers("f", (4, 5))
    assert_same(xp.asarray(left) @ xp.asarray(right), left @ right)
    square = numbers("d", (3, 3))
    array = xp.asarray(square)
    before = array
    array @= xp.eye(3) * 2
    assert_same(array, square @ (np.eye(3) * 2))
    assert array is not before  # CuPy has no product in place
    with pytest.raises(ValueError, match="matmul"):
        xp.ones((2, 3)) @ xp.ones((2, 3))


def test_none_equals_no_element():
    array = xp.arange(3)
    assert_same(array == None, [False] * 3)  # noqa: E711
    assert_same(array != None, [True] * 3)  # noqa: E711


@pytest.mark.parametrize("operand", [np.ones(3), np.ones((2, 3))], ids=["1-d", "2-d"])
@pytest.mark.parametrize("function", [operator.add, operator.mul, operator.lt, operator.matmul, np.maximum, xp.hypot])
def test_arrays_of_numpy_are_refused_on_either_side(function, operand):
    array = xp.ones(3)
    for operands in ((array, operand), (operand, array)):
        with pytest.raises(TypeError, match="Unsupported type <class 'numpy.ndarray'>"):
            function(*operands)


def test_in_place_operators_refuse_arrays_of_numpy_and_the_other_way_round():
    array, host = xp.ones(3), np.ones(3)
    with pytest.raises(TypeError, match="Unsupported type <class 'numpy.ndarray'>"):
        array += host
    with pytest.raises(TypeError, match="Unsupported type <class 'numpy.ndarray'>"):
        host += array
    with pytest.raises(TypeError, match="must be an array of the device"):
        np.add(array, array, out=host)
    assert array.tolist() == host.tolist() == [1, 1, 1]


@pytest.mark.parametrize("operand", [[1, 2, 3], "x", object()], ids=["list", "str", "object"])
def test_other_operands_are_refused(operand):
    with pytest.raises(TypeError):
        xp.ones(3) + operand
    with pytest.raises(TypeError):
        operand - xp.ones(3)


def test_an_operand_that_knows_arrays_gets_its_turn():
    class Knowing:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "mine"

    assert xp.ones(3) + Knowing() == "mine"


def test_division_by_zero_warns_nobody():
    assert_same(xp.ones(2) / xp.zeros(2), [np.inf, np.inf])
    assert np.isnan(float(xp.log(xp.asarray(-1.0))))


# Attributes and methods


def test_attributes_are_those_of_numpy():
    host = numbers("f", (2, 3, 4)).transpose(2, 0, 1)
    array = xp.asarray(numbers("f", (2, 3, 4))).transpose(2, 0, 1)
    for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides"):
        assert getattr(array, name) == getattr(host, name), name
    for flag in ("c_contiguous", "f_contiguous", "owndata", "fnc", "forc"):
        assert getattr(array.flags, flag) == getattr(host.flags, flag), flag
    assert array.flags["C_CONTIGUOUS"] is array.flags["C"] is False
    assert xp.zeros(3).flags["OWNDATA"]


def test_an_array_knows_where_it_lies(runtime):
    array = xp.zeros((4, 4))
    assert runtime.pointerGetDevice(array.data.ptr) == 0
    assert int(array[1:].data) == array.data.ptr + array.strides[0]
    assert array[::-1].data.ptr == array.data.ptr + 3 * array.strides[0]
    with on_device(runtime, 1):
        other = xp.zeros(3)
    assert (str(other.device), other.data.device_id, str(other.data.device)) == ("cuda:1", 1, "cuda:1")
    assert runtime.pointerGetDevice(other.data.ptr) == 1


def test_it_claims_no_interface_that_would_let_others_read_it_as_cuda_memory():
    array = xp.ones(3)
    assert not hasattr(array, "__cuda_array_interface__")
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
def test_methods_do_as_those_of_numpy(name, args, kwargs):
    host = numbers("d")
    assert_same(getattr(xp.asarray(host), name)(*args, **kwargs), getattr(host, name)(*args, **kwargs))


def test_methods_that_take_arrays_do_as_those_of_numpy():
    host, places = numbers("d"), np.array([2, 0, 1])
    array = xp.asarray(host)
    assert_same(array.dot(array.T), host.dot(host.T))
    assert_same(xp.asarray(places).choose(array[:, :3]), places.choose(host[:, :3]))
    assert_same(xp.arange(5).searchsorted(xp.asarray(places)), np.arange(5).searchsorted(places))
    assert_same(array.ptp(), np.ptp(host))
    for actual, expected in zip((array > 3).nonzero(), (host > 3).nonzero(), strict=True):
        assert_same(actual, expected)


def test_methods_that_write_do_as_those_of_numpy():
    for name, args in (("sort", (0,)), ("partition", (1,)), ("fill", (7,)), ("put", ([0, 5], [1.5, 2.5]))):
        host = numbers("d")
        array = xp.asarray(host)
        assert getattr(array, name)(*args) is None
        getattr(host, name)(*args)
        assert_same(array, host)


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


def test_the_constructor_lays_an_array_over_given_memory():
    array = xp.arange(6, dtype="i")
    rows = ndarray((3,), "i", array.data, (8,))
    assert rows.tolist() == [0, 2, 4]
    assert ndarray(2, "i", array[4:].data).tolist() == [4, 5]
    assert ndarray((2, 3), order="F").flags.fnc
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


# Views


VIEWS = {
    "T": lambda array: array.T,
    "mT": lambda array: array.mT,
    "reshape": lambda array: array.reshape(-1),
    "ravel": lambda array: array.ravel(),
    "swapaxes": lambda array: array.swapaxes(0, 1),
    "squeeze": lambda array: array[:1].squeeze(),
    "diagonal": lambda array: array.diagonal(1),
    "real": lambda array: array.real,
    "imag": lambda array: array.imag,
    "view": lambda array: array.view(),
    "view of bytes": lambda array: array.view("q"),
    "new axis": lambda array: array[None, ..., None],
    "reversed": lambda array: array[::-1, ::-2],
    "element": lambda array: array[1, 1, ...],
    "view of a view": lambda array: array.T[1:][:, 1:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_share_memory_and_cost_nothing(runtime, view):
    host = numbers("D")
    array = xp.asarray(host)
    used, time = allocated(), runtime.clock.now()
    seen = view(array)
    assert (allocated(), runtime.clock.now()) == (used, time)
    assert seen.base is array
    assert xp.shares_memory(seen, array)
    view(array)[...] = 7
    expected = host.copy()
    target = view(expected)
    if not target.flags.writeable:
        target.setflags(write=True)
    target[...] = 7
    np.testing.assert_array_equal(array.get(), expected)


def test_functions_give_views_that_can_be_written_to():
    array = xp.zeros((2, 4))
    halves = xp.split(array, 2, axis=1)
    halves[1][...] = 1
    xp.broadcast_to(array[:, :1], (2, 4))[0, 3] = 5  # CuPy does not protect it
    assert array.tolist() == [[5, 0, 1, 1], [0, 0, 1, 1]]


def test_parts_of_complex_numbers_can_be_set():
    array = xp.zeros(2, "D")
    array.real = xp.asarray([1.0, 2.0])
    array.imag = 3
    assert array.tolist() == [1 + 3j, 2 + 3j]
    with pytest.raises(TypeError, match="imaginary part"):
        xp.zeros(2).imag = 1
    assert xp.ones(2).imag.tolist() == [0, 0]


def test_a_view_keeps_the_memory():
    before = allocated()
    view = xp.arange(1024.0)[1000:]
    with_view = allocated()
    assert with_view != before
    gc.collect()
    assert view.tolist() == list(range(1000, 1024))
    last = view[:1].data
    del view
    assert allocated() == with_view
    del last
    assert allocated() == before


def test_the_memory_of_an_array_is_freed_when_it_dies():
    before = allocated()
    array = xp.zeros(1 << 20, "B")
    assert allocated()[0] == before[0] + (1 << 20)
    del array
    assert allocated() == before


def test_memory_is_used_again_and_given_back_on_demand(runtime):
    tcuda.empty_cache()
    free, _ = runtime.memGetInfo()
    array = xp.empty(30 << 20, "B")
    address, held = array.data.ptr, free - runtime.memGetInfo()[0]
    assert held >= 30 << 20
    del array
    assert runtime.memGetInfo()[0] == free - held
    again = xp.empty(30 << 20, "B")
    assert again.data.ptr == address
    del again
    tcuda.empty_cache()
    assert runtime.memGetInfo()[0] == free


def test_memory_takes_no_time_and_is_no_work_of_a_stream(runtime):
    runtime.sleep(MILLISECOND, 0)
    time, ready = runtime.clock.now(), runtime.devices[0].default.ready
    array = xp.empty(30 << 20, "B")
    del array
    assert (runtime.clock.now(), runtime.devices[0].default.ready) == (time, ready)


def test_arrays_without_elements_take_no_memory(runtime):
    before = allocated()
    array = xp.zeros((3, 0, 2))
    assert allocated() == before
    assert array.data.ptr == 0
    assert (array + 1).shape == array.get().shape == (3, 0, 2)
    assert array.sum().item() == 0
    assert array.reshape(0).size == array[1:2].size == array.T.size == 0
    with on_device(runtime, 1):  # views all the same, for which the current device does not matter
        assert array.T.base is array
        assert str(array[1:, ..., :1].device) == "cuda:0"


# Indices


def matching(array_shape):
    return st.one_of(
        hnp.basic_indices(array_shape, allow_newaxis=True),
        hnp.integer_array_indices(array_shape, result_shape=hnp.array_shapes(min_side=0, max_dims=2)),
        hnp.arrays(bool, array_shape),
    )


shapes_and_indices = hnp.array_shapes(max_dims=3, max_side=4).flatmap(
    lambda shape: st.tuples(st.just(shape), matching(shape))
)


def on_the_device(index):
    if isinstance(index, tuple):
        return tuple(map(on_the_device, index))
    return xp.asarray(index) if isinstance(index, np.ndarray) else index


@thorough
@given(shapes_and_indices)
def test_getitem_does_as_numpy(case):
    shape, index = case
    host = np.arange(np.prod(shape)).reshape(shape)
    array = xp.asarray(host)
    assert_same(array[on_the_device(index)], host[index])
    assert_same(array[index], host[index])  # indices from the host are copied to the device


@thorough
@given(shapes_and_indices, st.booleans())
def test_setitem_does_as_numpy(case, scalar):
    shape, index = case
    host = np.zeros(shape, int)
    array = xp.asarray(host)
    value = np.asarray(7) if scalar else np.arange(1, host[index].size + 1).reshape(np.shape(host[index]))
    unique = np.arange(host.size).reshape(shape)[index]
    if np.unique(unique).size < unique.size:
        value = np.asarray(7)  # several values for one element: CuPy does not say which one wins
    array[on_the_device(index)] = xp.asarray(value)
    host[index] = value
    assert_same(array, host)


@thorough
@given(hnp.array_shapes(max_dims=3, max_side=4).flatmap(lambda s: st.tuples(st.just(s), hnp.basic_indices(s))))
def test_views_write_through_to_their_base(case):
    shape, index = case
    host = np.zeros(shape)
    array = xp.asarray(host)
    view = array[index]
    view += 1
    view[...] = view * 2
    host[index] = 2
    assert_same(array, host)


def test_index_arrays_give_copies():
    array = xp.arange(4)
    for index in (xp.asarray([1, 2]), xp.asarray(2), [0, 1], np.array(1), array > 1, True):
        copied = array[index]
        copied[...] = 9
        assert copied.base is None
    assert array.tolist() == [0, 1, 2, 3]


def test_indices_of_several_kinds_go_together():
    host = numbers("d", (3, 4, 5))
    array = xp.asarray(host)
    rows, columns = [2, 0], [1, 3]
    assert_same(array[rows, :, columns], host[rows, :, columns])
    assert_same(array[xp.asarray(rows), None, 1], host[rows, None, 1])
    assert_same(array[[]], host[[]])
    assert_same(array[host > 3], host[host > 3])
    assert_same(array[..., xp.asarray([True, False, True, False, True])], host[..., ::2])


@pytest.mark.parametrize("index", [4, -5, (0, 0), 1.5, "a", (..., ...), [0, 4], [1.5]], ids=lambda index: repr(index))
def test_indices_that_do_not_fit_are_refused(index):
    array = xp.arange(4)
    with pytest.raises(IndexError):
        array[index]
    with pytest.raises(IndexError):
        array[index] = 0
    with pytest.raises(IndexError, match="integer or boolean type"):
        array[xp.asarray([1.0])]


@pytest.mark.parametrize("value", [np.arange(3), [1, 2, 3]], ids=["numpy", "list"])
def test_assignment_from_the_host_is_refused_as_by_cupy(value):
    array = xp.zeros(3)
    for index in (..., slice(None), slice(0, 3)):
        with pytest.raises(ValueError, match="cannot be used for fill"):
            array[index] = value
    array[[0, 1, 2]] = value  # CuPy copies it to the device where there is an index array
    assert array.tolist() == list(value)
    array[0] = np.asarray(9)
    array[1] = np.float32(8)
    assert array.tolist() == [9, 8, value[2]]


def test_assignment_converts_and_broadcasts():
    array = xp.zeros((2, 3), "i")
    array[...] = xp.asarray([1.9, 2.9, 3.9])
    array[1] = True
    assert array.tolist() == [[1, 2, 3], [1, 1, 1]]
    with pytest.raises(ValueError, match="broadcast"):
        array[...] = xp.ones(4)


def test_an_array_is_a_sequence():
    array = xp.arange(6).reshape(2, 3)
    assert len(array) == 2
    assert [row.tolist() for row in array] == [[0, 1, 2], [3, 4, 5]]
    assert all(isinstance(item, ndarray) for item in xp.arange(3))
    assert 2 in xp.arange(3)
    assert 5 not in xp.arange(3)
    first = next(iter(array))
    first += 1
    assert array[0].tolist() == [1, 2, 3]
    for function in (len, iter):
        with pytest.raises(TypeError, match="(?i)0-d|unsized"):
            function(xp.asarray(1))


# Memory that runs out, kernels that fail


def test_out_of_memory_says_what_was_asked_and_leaves_nothing():
    before = allocated()
    with pytest.raises(OutOfMemoryError) as raised:
        xp.empty(1 << 34, "B")
    assert str(raised.value).startswith(
        "CUDA out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 2.00 GiB of which 2.00 GiB is "
        "free."
    )
    assert f"Of the reserved memory, {size_text(before[0])} is allocated" in str(raised.value)
    assert "allocate less at a time" in str(raised.value)
    assert allocated() == before
    assert float(xp.ones(3).sum()) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda array: array + 1,
        lambda array: divmod(array, 3),  # room for the first result, none for the second
        lambda array: array.repeat(9),
        lambda array: xp.frexp(array),
        lambda array: xp.stack([array, array, array]),
        lambda array: array[xp.asarray([[0] * 4000])],
        lambda array: xp.asarray(np.zeros(9000)),
        lambda array: array.copy(),
        lambda array: xp.linalg.eigh(xp.outer(array[:20], array[:20])),
    ],
)
def test_operations_that_run_out_of_memory_leave_nothing(function):
    array = xp.ones(1000, "f")
    room = xp.empty(4608, "B")
    fillers = []  # nobody touches them, so they cost the host nothing
    for size in (1 << power for power in range(30, 8, -1)):
        with contextlib.suppress(OutOfMemoryError):
            while True:
                fillers.append(xp.empty(size, "B"))
    del room
    before = allocated()
    try:
        kept = function(array)
    except OutOfMemoryError as error:
        assert allocated() == before, "while the traceback is alive"
        del error
    else:
        del kept
    del fillers
    assert array.tolist() == [1] * 1000


def test_a_kernel_that_fails_leaves_no_memory_and_no_time(runtime):
    array, exponent = xp.arange(1000), xp.full(1000, -1)
    runtime.sleep(MILLISECOND, 0)
    before, ready = allocated(), runtime.devices[0].default.ready
    failures = []
    for function in (
        lambda: array**exponent,
        lambda: array + exponent[:7],
        lambda: array.reshape(7),
        lambda: array.sum(axis=3),
        lambda: operator.setitem(array, slice(3), exponent),
    ):
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            function()
        failures.append(raised)
    assert allocated() == before, "while the tracebacks are alive"
    assert runtime.devices[0].default.ready == ready


def test_a_stream_whose_capture_is_spoiled_takes_no_kernel(runtime):
    array = xp.ones(100)
    before = allocated()
    with new_stream(runtime) as stream:
        runtime.enterStream(stream)
        runtime.streamBeginCapture(stream.ptr, CAPTURE_RELAXED)
        try:
            with pytest.raises(AcceleratorError):
                runtime.streamSynchronize(stream.ptr)
            for use in (lambda: array + 1, array.sum, array.get, lambda: array.fill(2), lambda: xp.asarray([1])):
                with pytest.raises(AcceleratorError) as raised:
                    use()
                assert raised.value.error_code == 901
                assert allocated() == before, "while the traceback is alive"
        finally:
            runtime.exitStream()
        with pytest.raises(AcceleratorError):
            runtime.streamEndCapture(stream.ptr)
    del raised
    assert array.tolist() == [1] * 100


@pytest.mark.parametrize("mode", [CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED])
def test_an_array_that_lives_or_dies_during_a_capture_does_not_spoil_it(runtime, mode):
    array = xp.ones(100)  # on the default stream, where an operation would be forbidden
    other = xp.empty(100)
    blocking = runtime.streamCreateWithPriority(0, 0)
    tcuda.memory.record_stream(other, types.SimpleNamespace(ptr=blocking))
    runtime.streamBeginCapture(blocking, mode)
    del array, other
    xp.empty(100 << 20, "B")  # the device has to be asked for it
    runtime.graphDestroy(runtime.streamEndCapture(blocking))
    runtime.streamDestroy(blocking)


def test_an_array_outlives_its_stream(runtime):
    with new_stream(runtime) as stream:
        runtime.enterStream(stream)
        array = xp.ones(100)
        runtime.exitStream()
    assert array.sum().item() == 100


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
            lambda: operator.setitem(there, ..., here),
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
    with on_device(runtime, 1):
        copied = copying(array)
        assert copied.device.index == 1
        assert copied.get().tolist() == array.tolist()
        assert (copied + 1).device.index == 1
        assert copy.deepcopy(array).device.index == 0
    assert array.device.index == 0


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
        np.from_dlpack,
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


def test_get_and_set_use_the_stream_they_are_given(runtime):
    array = xp.zeros(3)
    with new_stream(runtime) as stream:
        start = runtime.clock.now()
        runtime.sleep(MILLISECOND, stream.ptr)
        array.set(np.ones(3), stream=types.SimpleNamespace(ptr=stream.ptr))
        array.get()
        assert runtime.clock.now() < start + MILLISECOND
        assert array.get(stream).tolist() == [1, 1, 1]
        assert runtime.clock.now() >= start + MILLISECOND
    assert runtime.currentStream().ptr == 0


def test_a_copy_to_pinned_memory_need_not_be_waited_for(runtime):
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
def test_get_lays_the_copy_out_as_asked(view, order):
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


def test_scalars_come_out_of_arrays_of_one_element():
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
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):  # as with CuPy's arrays
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
    with pytest.raises(TypeError, match="no implementation found for 'numpy.save'"):
        np.save(tmp_path / "x.npy", array)


def test_arrays_can_be_pickled_and_copied_but_not_hashed(tmp_path):
    array = xp.asarray(numbers("f")).T
    for copied in (pickle.loads(pickle.dumps(array)), pickle.loads(array.dumps()), copy.copy(array)):
        assert_same(copied, array.get())
        assert not xp.shares_memory(copied, array)
    assert pickle.loads(pickle.dumps(array)).flags.f_contiguous
    with (tmp_path / "dump").open("w+b") as file:
        array.dump(file)
        file.seek(0)
        assert_same(pickle.load(file), array.get())
        file.seek(0)
        array.tofile(file)
    assert (tmp_path / "dump").read_bytes().startswith(array.tobytes())
    with pytest.raises(TypeError, match="unhashable"):
        hash(array)


def test_dlpack_shares_the_memory_with_numpy(runtime):
    array = xp.arange(6.0).reshape(2, 3)
    assert array.__dlpack_device__() == (1, 0)
    before = allocated()
    host = np.from_dlpack(array[:, 1:])
    array += 1
    assert host.tolist() == [[2, 3], [5, 6]]
    del array
    gc.collect()
    assert allocated() == before
    assert host.tolist() == [[2, 3], [5, 6]]


def test_dlpack_copies_arrays_of_the_host_in():
    host = np.arange(3)
    array = xp.from_dlpack(host)
    host[0] = 9
    assert_same(array, [0, 1, 2])
    same = xp.from_dlpack(array)
    same[0] = 5
    assert array[0] == 5
    assert not xp.shares_memory(xp.from_dlpack(array, copy=True), array)
    with pytest.raises(BufferError, match="current device only"):
        xp.from_dlpack(array, device="cpu")


# NumPy's functions on these arrays


def test_ufuncs_of_numpy_run_on_the_device():
    host = numbers("d")
    array, out = xp.asarray(host), xp.zeros((3, 4))
    assert_same(np.add(array, 1), host + 1)
    assert np.multiply(array, array, out=out) is out
    assert_same(out, host * host)
    assert_same(np.add.reduce(array), np.add.reduce(host))
    assert_same(np.multiply.reduce(array, axis=1, keepdims=True), np.multiply.reduce(host, axis=1, keepdims=True))
    nothing = xp.zeros(0)  # NumPy before 2.5 keeps a reference to the operand of a reduction that is refused
    with pytest.raises(NotImplementedError, match="`maximum.reduce` is not supported, as in CuPy"):
        np.maximum.reduce(nothing)
    assert_same(np.add.accumulate(array, axis=1), np.add.accumulate(host, axis=1))
    assert_same(np.multiply.outer(array[0], array[1]), np.multiply.outer(host[0], host[1]))
    assert_same(np.add.reduceat(array, [0, 2], axis=0), np.add.reduceat(host, [0, 2], axis=0))
    assert_same(np.add(array, 1, dtype="f"), np.add(host, 1, dtype="f"))
    with pytest.raises(TypeError, match="Wrong arguments"):  # CuPy's ufuncs have no mask
        np.add(array, 1, out=out, where=array > 2)
    total = xp.zeros(4)
    assert np.add.reduce(array, out=total) is total
    assert_same(total, host.sum(axis=0))
    first, second = xp.zeros((3, 4)), xp.zeros((3, 4))
    assert np.modf(array / 4, out=(first, second))[1] is second
    assert_same(first, np.modf(host / 4)[0])


def test_ufunc_at_counts_repeated_indices():
    array, host = xp.zeros(4), np.zeros(4)
    np.add.at(array, [0, 0, 2], 1.5)
    np.add.at(array, xp.asarray([3, 3]), xp.asarray([1.0, 2.0]))
    np.add.at(host, [0, 0, 2], 1.5)
    np.add.at(host, [3, 3], [1.0, 2.0])
    assert_same(array, host)
    xp.maximum.at(array, slice(1, 3), 2)
    assert array.tolist() == [3, 2, 2, 3]


def test_ufuncs_that_cupy_does_not_have_are_refused():
    with pytest.raises(TypeError, match="returned NotImplemented"):
        np.spacing(xp.ones(2))
    with pytest.raises(TypeError, match="Wrong arguments"):
        np.add(xp.ones(2), 1, subok=False)
    with pytest.raises(TypeError, match="Wrong number of arguments"):
        xp.add(xp.ones(2))
    with pytest.raises(ValueError, match="both a positional and keyword"):
        xp.negative(xp.ones(2), xp.ones(2), out=xp.ones(2))


def test_named_results_of_one_function_may_be_given_to_another():
    array = xp.asarray(numbers("d", (3, 3)))
    factors = xp.linalg.qr(array)
    assert_same(np.stack(factors), np.stack([factor.get() for factor in factors]))


def test_functions_of_numpy_run_on_the_device():
    host = numbers("d")
    array = xp.asarray(host)
    assert_same(np.concatenate([array, array]), np.concatenate([host, host]))
    assert_same(np.sum(array, axis=0), host.sum(axis=0))
    assert_same(np.zeros_like(array), np.zeros_like(host))
    assert_same(np.where(array > 0, array, 0), np.where(host > 0, host, 0))
    assert_same(np.linalg.norm(array), np.linalg.norm(host))
    assert_same(np.fft.fft(array), np.fft.fft(host))
    assert np.shape(array) == (3, 4)
    assert np.reshape(array, -1).base is array
    with pytest.raises(TypeError, match="not an object of <class 'numpy.ndarray'>"):
        np.concatenate([array, host])
    with pytest.raises(TypeError, match="no implementation found"):
        np.insert(array, 0, 1)


# The model of time


def elapsed(runtime, work):
    """Return the nanoseconds that ``work`` keeps the current stream busy."""
    runtime.deviceSynchronize()
    runtime.sleep(MILLISECOND, 0)  # meanwhile the host can enqueue the rest without a gap
    start = runtime.devices[0].default.ready
    result = work()
    del result
    return runtime.devices[0].default.ready - start


def test_kernels_take_the_time_of_what_they_move_and_compute(runtime):
    a, b = xp.ones((1000, 500)), xp.ones((500, 2000))
    moved = a.nbytes + b.nbytes + 8 * 1000 * 2000
    assert elapsed(runtime, lambda: a + a) == costs.kernel(3 * a.nbytes)
    assert elapsed(runtime, lambda: a.sum(axis=0)) == costs.kernel(a.nbytes + 500 * 8)
    assert elapsed(runtime, lambda: a.fill(1)) == costs.kernel(a.nbytes)
    assert elapsed(runtime, lambda: a.T) == 0
    flops = 2 * 1000 * 500 * 2000
    assert costs.kernel(moved, flops) > costs.kernel(moved)
    for product in (
        lambda: a @ b,
        lambda: a.dot(b),
        lambda: xp.matmul(a, b),
        lambda: xp.tensordot(a, b, 1),
        lambda: xp.einsum("ij,jk->ik", a, b),
        lambda: xp.inner(a, b.T),
    ):
        assert elapsed(runtime, product) == costs.kernel(moved, flops)


def test_work_goes_to_the_current_stream(runtime):
    runtime.deviceSynchronize()
    with new_stream(runtime) as stream:
        busy = runtime.devices[0].default.ready
        runtime.enterStream(stream)
        array = xp.ones(1000) + 1
        runtime.exitStream()
        assert runtime.devices[0].default.ready == busy
        assert runtime._streams[stream.ptr].ready > busy
    assert array.sum().item() == 2000


def test_the_clock_can_be_read_and_advanced(runtime):
    clock = tcuda.emulation.clock()
    assert clock is runtime.clock
    before = clock.now()
    assert clock.advance(5) == clock.now() == before + 5


# Threads


def test_threads_compute_at_the_same_time(runtime):
    before = allocated()
    failures = []

    def work(seed):
        try:
            runtime.setDevice(seed % 2)
            host = np.random.default_rng(seed).random((20, 20))
            array = xp.asarray(host)
            for _ in range(30):
                array = (array @ array) % 1 + array.T[::-1]
                host = (host @ host) % 1 + host.T[::-1]
            np.testing.assert_array_equal(array.get(), host)
            assert array.device.index == seed % 2
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert allocated() == before


def test_an_array_may_die_in_another_thread(runtime):
    before = allocated()
    arrays = [xp.ones(100)]
    with on_device(runtime, 1):
        arrays.append(xp.ones(100))
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert allocated() == before
