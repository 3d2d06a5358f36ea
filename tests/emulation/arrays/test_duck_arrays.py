"""Functions that only call the methods of their argument take the arrays of other libraries, as CuPy's functions do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from tcuda import xp

pytestmark = pytest.mark.usefixtures("runtime")

CALLS = {
    "amax(a, 1)": ("max", (), {"axis": 1, "out": None, "keepdims": False}),
    "amin(a, 1)": ("min", (), {"axis": 1, "out": None, "keepdims": False}),
    "argmax(a, 1)": ("argmax", (), {"axis": 1, "dtype": None, "out": None, "keepdims": False}),
    "argmin(a)": ("argmin", (), {"axis": None, "dtype": None, "out": None, "keepdims": False}),
    "argpartition(a, 2)": ("argpartition", (2,), {"axis": -1}),
    "argsort(a)": ("argsort", (), {"axis": -1, "kind": None}),
    "choose(a, [1, 2])": ("choose", ([1, 2], None, "raise"), {}),
    "clip(a, 1, a_max=2)": ("clip", (1, 2), {"out": None}),
    "compress([True], a)": ("compress", ([True], None, None), {}),
    "copy(a)": ("copy", (), {"order": "K"}),
    "diagonal(a, 1)": ("diagonal", (1, 0, 1), {}),
    "dot(a, 3)": ("dot", (3, None), {}),
    "linalg.matrix_transpose(a)": ("swapaxes", (1, 0), {}),
    "matrix_transpose(a)": ("swapaxes", (-1, -2), {}),
    "max(a)": ("max", (), {"axis": None, "out": None, "keepdims": False}),
    "mean(a, keepdims=True)": ("mean", (), {"axis": None, "dtype": None, "out": None, "keepdims": True}),
    "min(a)": ("min", (), {"axis": None, "out": None, "keepdims": False}),
    "nanargmax(a)": ("argmax", (), {"axis": None, "dtype": None, "out": None, "keepdims": False}),
    "nanargmin(a)": ("argmin", (), {"axis": None, "dtype": None, "out": None, "keepdims": False}),
    "nanmean(a)": ("mean", (), {"axis": None, "dtype": None, "out": None, "keepdims": False}),
    "nanstd(a)": ("std", (), {"axis": None, "dtype": None, "out": None, "ddof": 0, "keepdims": False}),
    "nanvar(a)": ("var", (), {"axis": None, "dtype": None, "out": None, "ddof": 0, "keepdims": False}),
    "permute_dims(a, (1, 0))": ("transpose", ((1, 0),), {}),
    "prod(a, 1)": ("prod", (1, None, None, False), {}),
    "ptp(a)": ("ptp", (), {"axis": None, "out": None, "keepdims": False}),
    "ravel(a)": ("ravel", ("C",), {}),
    "repeat(a, 2)": ("repeat", (2, None), {}),
    "reshape(a, (6,))": ("reshape", ((6,),), {"order": "C", "copy": None}),
    "squeeze(a)": ("squeeze", (None,), {}),
    "std(a, 0)": ("std", (), {"axis": 0, "dtype": None, "out": None, "ddof": 0, "keepdims": False}),
    "sum(a=a, dtype=int)": ("sum", (None, int, None, False), {}),
    "swapaxes(a, 0, 1)": ("swapaxes", (0, 1), {}),
    "take(a, 0)": ("take", (0, None, None), {}),
    "trace(a)": ("trace", (0, 0, 1, None, None), {}),
    "transpose(a)": ("transpose", (None,), {}),
    "var(a, ddof=1)": ("var", (), {"axis": None, "dtype": None, "out": None, "ddof": 1, "keepdims": False}),
}
"""Calls of functions for an array ``a`` of another library, and the calls of its methods that CuPy makes."""


class Methods:
    """An array of another library, whose methods return what they were called with."""

    shape, ndim, dtype = (2, 3), 2, np.dtype(int)

    def __getattr__(self, name):
        return lambda *args, **kwargs: (name, args, kwargs)


class Held:
    """An array of another library, which holds an array of the host."""

    def __init__(self, held):
        self.held = np.array(held)

    def __getitem__(self, index):
        return Held(self.held[index])

    def __eq__(self, other):
        return Held(self.held == other.held)

    __hash__ = None

    def __getattr__(self, name):
        found = getattr(self.held, name)
        return (lambda *args, **kwargs: Held(found(*args, **kwargs))) if inspect.isroutine(found) else found


def value_of(call, array):
    """Return the value of ``call``, in which ``a`` is ``array`` and other names are functions of ``xp``."""
    return eval(f"xp.{call}", {"xp": xp, "a": array})


@pytest.mark.parametrize("call", CALLS)
def test_a_function_calls_the_method_with_the_arguments_that_cupy_hands_on(call):
    assert value_of(call, Methods()) == CALLS[call]


def test_put_returns_nothing():
    held = Held(np.array([3, 1]))
    assert value_of("put(a, 1, 2)", held) is None
    np.testing.assert_array_equal(held.held, [3, 2])


@pytest.mark.parametrize(
    "call",
    [
        "flip(a)",
        "flip(a, 1)",
        "flip(a, (0, -1))",
        "fliplr(a)",
        "flipud(a)",
        "partition(a, 1)",
        "partition(a, 1, axis=None)",
        "rot90(a, 0)",
        "rot90(a)",
        "rot90(a, 2)",
        "rot90(a, -1)",
        "sort(a)",
        "sort(a, axis=None)",
        "sort_complex(a)",
    ],
)
def test_a_function_of_several_methods_has_the_elements_of_numpys(call):
    host = np.array([[3, 1, 2], [9, 7, 8]])
    result = value_of(call, Held(host))
    assert isinstance(result, Held)
    np.testing.assert_array_equal(result.held, eval(f"np.{call}", {"np": np, "a": host}))


def test_sort_complex_keeps_the_precision_of_small_types():
    assert xp.sort_complex(Held(np.array([2, 1], np.int8))).held.dtype == np.complex64


def test_a_function_that_changes_nothing_returns_its_argument():
    array = Held([1.0, 2.0])
    assert xp.real_if_close(array) is array
    assert xp.isfortran(Held(np.ones((2, 3), order="F"))) is True


@pytest.mark.parametrize("call", ["fliplr(a)", "rot90(a)", "matrix_transpose(a)"])
def test_too_few_axes_are_refused(call):
    with pytest.raises(ValueError, match="axes|2-d"):
        value_of(call, Held([1, 2]))


@pytest.mark.parametrize(
    "call",
    [
        "all(a)",
        "any(a)",
        "argwhere(a)",
        "cumsum(a)",
        "flatnonzero(a)",
        "median(a)",
        "nanmean(a)",
        "nonzero(a)",
        "real_if_close(a)",
        "size(a)",
    ],
)
def test_a_function_with_a_kernel_of_its_own_refuses_other_libraries(call):
    with pytest.raises(TypeError):
        value_of(call, Held([1j, 2j]))


@pytest.mark.parametrize("name", ["squeeze", "sum", "ravel", "mean", "flip", "nanmean", "sort", "array_equal"])
def test_an_object_without_the_methods_is_refused(name):
    others = [object()] if name == "array_equal" else []
    with pytest.raises(AttributeError):
        getattr(xp, name)(object(), *others)


def test_an_error_of_the_method_reaches_the_program():
    class Broken:
        def squeeze(self, axis):
            return self.inner()

        def inner(self):
            return [].missing

    with pytest.raises(AttributeError, match="missing"):
        xp.squeeze(Broken())


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("other", [Held([1, 2, 3]), np.arange(3)])
def test_arrays_of_other_shapes_are_not_equal_whatever_they_are(other, equal_nan):
    for result in (xp.array_equal(xp.arange(4), other, equal_nan), xp.array_equal(other, xp.arange(4), equal_nan)):
        assert isinstance(result, xp.ndarray)
        assert not result


def test_arrays_of_another_library_are_compared_by_their_own_operator():
    assert xp.array_equal(Held([1, 2]), Held([1, 2])).held
    assert not xp.array_equal(Held([1, 2]), Held([1, 3])).held
    with pytest.raises(TypeError):
        xp.array_equal(Held([1, 2]), Held([1, 2]), equal_nan=True)
    with pytest.raises(TypeError):
        xp.array_equal(xp.arange(3), np.arange(3))


def test_arrays_of_dask_go_through_thin_functions():
    dask = pytest.importorskip("dask.array")
    held = xp.arange(6.0).reshape(1, 6)
    array = dask.from_array(held, chunks=3, asarray=False)
    assert xp.squeeze(array).shape == (6,)
    assert xp.max(array, 1).compute().item() == 5
    assert xp.mean(array).compute().item() == 2.5
    assert xp.repeat(array, 2, 0).compute().shape == (2, 6)
    assert not xp.array_equal(held, array[:, :2], equal_nan=True)
    assert xp.array_equal(array, array).compute()
