"""Kernels of elements that are structures, whose fields have numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

pytestmark = pytest.mark.usefixtures("runtime")


def test_a_kernel_reads_and_writes_the_fields_of_an_element():
    xp = tcuda.xp
    operation = 'static_assert(T::field_count == 2, "two fields"); y.template at<1>() = -x.template at<0>();'
    negate = xp.ElementwiseKernel("T x", "T y", operation, "negate")
    x, y = xp.asarray(np.array([(1, 2), (3, 4)], "i,i")), xp.asarray(np.array([(5, 6), (7, 8)], "i,i"))
    assert negate(x, y).tolist() == [(5, -1), (7, -3)]
    total = xp.ReductionKernel("T x", "int64 y", "x.template at<1>()", "a + b", "y = a", "0", "total_of_fields")
    with pytest.raises(ValueError, match="Unsupported dtype"):
        total(x)


def test_structures_are_copied_and_compared_field_by_field():
    xp = tcuda.xp
    inner = np.dtype("i4,f4")
    host = np.zeros(3, np.dtype([("a", "f8"), ("b", inner), ("c", "f2")], align=True))
    host["a"], host["b"]["f1"], host["c"] = [1, 2, 3], 7, [0.5, 1, 2]
    move = xp.ElementwiseKernel("T x", "T y, bool same", "same = x == y; y = x;", "move")
    x, y, same = xp.asarray(host), xp.zeros(3, host.dtype), xp.zeros(3, bool)
    assert not move(x, y, same)[1].any()
    np.testing.assert_array_equal(y.get(), host)
    assert move(x[::2], y[::2], same[::2])[1].all()
    fill = xp.ElementwiseKernel("int32 value", "T y", "y = value;", "fill_structures")
    assert fill(4, y).get()["c"].tolist() == [4, 4, 4]


def test_a_structure_whose_fields_are_not_aligned_is_refused():
    xp = tcuda.xp
    x = xp.ndarray(3, np.dtype("?,f8"))
    with pytest.raises(ValueError, match="is not aligned to 8"):
        xp.ElementwiseKernel("T x", "bool y", "y = x.template at<0>();", "unaligned")(x)
