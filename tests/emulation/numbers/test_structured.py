"""Arrays of structures, and of bytes without a meaning."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from support.emulated_arrays import assert_same_array
from tcuda.emulation import xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

PAIRS = [(1, 2.0), (3, 4.0), (5, 6.0)]


def test_arrays_of_structures_are_made_copied_and_cast():
    host = np.array(PAIRS, "i8,f8")
    array = xp.array(host)
    assert_same_array(array, host)
    assert_same_array(xp.zeros(2, "i,i"), np.zeros(2, "i,i"))
    assert_same_array(xp.zeros(2, "V4"), np.zeros(2, "V4"))
    assert_same_array(array[::2].copy(), host[::2])
    assert_same_array(array.astype("f8,i8"), host.astype("f8,i8"))
    assert_same_array(xp.full(2, 1.5, "i8,f8"), np.full(2, 1.5, "i8,f8"))
    array[:] = host[1]
    assert_same_array(array, np.array([(3, 4.0)] * 3, "i8,f8"))


def test_a_field_is_a_view():
    host = np.array(PAIRS, "i8,f8")
    array = xp.array(host)
    field = array["f1"]
    field += 1
    array["f0"] = -1
    host["f1"] += 1
    host["f0"] = -1
    assert field.base is array
    assert_same_array(array, host)
    assert_same_array(array[["f1", "f0"]], host[["f1", "f0"]])
    with pytest.raises(ValueError, match="no field name of f2"):
        array["f2"]
    with pytest.raises(ValueError, match="nested subarrays"):
        xp.zeros(2, "i,(3,3)i")["f1"]


@pytest.mark.parametrize(("dtype", "field"), [("?,f8", "f1"), ("f8,?", "f0")])
def test_a_field_that_a_kernel_cannot_read_is_refused(dtype, field):
    array = xp.array(np.zeros(3, dtype))
    with pytest.raises(ValueError, match="not sufficiently aligned for GPU"):
        array[field]
    assert array[:0][field].shape == (0,)
    with pytest.raises(ValueError, match="make_aligned_dtype"):
        xp.ones(3, dtype)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_structures_are_compared(compare):
    one, other = np.array(PAIRS[:1], "i8,f8"), np.array(PAIRS, "f8,i8")
    assert_same_array(compare(xp.array(one), xp.array(other)), compare(one, other))
    words = np.array([b"12345678", b"abcdefgh"], "V8")
    assert_same_array(compare(xp.array(words), xp.array(words[:1])), compare(words, words[:1]))
    with pytest.raises(TypeError, match="common dtype"):
        compare(xp.array(one)[["f1", "f0"]], xp.array(other))
    with pytest.raises(TypeError, match="structured and non-structured"):
        compare(xp.array(one), xp.ones(1))
    with pytest.raises(TypeError, match="different size"):
        compare(xp.array(words), xp.array(words.view("V4")))
    subarrays = xp.zeros(2, np.dtype([("a", [("x", "i4")], (3,))]))
    with pytest.raises(ValueError, match="subarray dtypes"):
        compare(subarrays, subarrays)


def test_structures_are_neither_added_nor_sorted():
    array = xp.zeros(3, "i,i")
    with pytest.raises(TypeError):
        array + array
    for sort in (xp.sort, xp.argsort, lambda a: a.sort()):
        with pytest.raises(NotImplementedError, match="not supported"):
            sort(array)


@pytest.mark.parametrize("dtype", [object, "U3", "M8[s]", "i8,O", "V0", ">i4"])
def test_a_dtype_without_a_meaning_on_a_device_is_refused(dtype):
    with pytest.raises(ValueError, match="Unsupported dtype"):
        xp.empty(3, dtype)


@pytest.mark.parametrize(
    ("dtype", "itemsize"),
    [("?,c8", 16), ("c8,?", 16), ("?,(3,)c8", 32), (np.dtype([("a", "c8,?"), ("b", "?")]), 24), ("?,(4,)V3", 13)],
)
def test_an_aligned_dtype_has_its_fields_where_kernels_need_them(dtype, itemsize):
    aligned = xp.make_aligned_dtype(dtype)
    assert aligned.itemsize == itemsize
    for field, offset in aligned.fields.values():
        assert offset % (1 if field.base.kind == "V" else field.base.itemsize) == 0


def test_an_alignment_can_be_asked_for():
    assert xp.make_aligned_dtype("f4,f4", alignment=16).itemsize == 16
    nested = np.dtype([("a", "?"), ("b", xp.make_aligned_dtype("f4,f4", alignment=16))])
    assert xp.make_aligned_dtype(nested).fields["b"][1] == 16
    for alignment in (0, 3, 2):
        with pytest.raises(ValueError, match="alignment"):
            xp.make_aligned_dtype("f4,f4", alignment=alignment)
    with pytest.raises(ValueError, match="structured dtypes"):
        xp.make_aligned_dtype("f8")


@pytest.mark.parametrize("dtype", [[("a", "i4")], {"names": ["a"], "formats": ["i4"]}], ids=type)
def test_a_dtype_of_an_array_is_no_list_and_no_dictionary(dtype):
    assert_same_array(xp.array([(1,)], dtype), np.array([(1,)], dtype))  # NumPy makes this array
    ones = xp.ones(2, "i4")
    for make in (xp.zeros, xp.empty, xp.ndarray, lambda shape, kind: xp.ndarray(shape, kind, ones.data)):
        with pytest.raises(TypeError, match="unhashable type: '(list|dict)'"):
            make(2, dtype)
    for make in (xp.empty_like, xp.ndarray.astype, xp.ndarray.view, np.empty_like):
        with pytest.raises(TypeError, match=r"pass numpy\.dtype\("):
            make(ones, dtype=dtype)
