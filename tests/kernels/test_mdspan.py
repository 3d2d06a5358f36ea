"""Kernels with parameters of the type ``cuda::std::mdspan``."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

SOURCE = r"""
#include <cuda/std/mdspan>

using cuda::std::dynamic_extent;

template <class T, class Index, class Layout>
__global__ void scaled(cuda::std::mdspan<T, cuda::std::extents<Index, dynamic_extent, dynamic_extent>, Layout> a,
                       cuda::std::mdspan<T, cuda::std::dextents<Index, 2>, Layout> b) {
    static_assert(decltype(a)::rank() == 2 && decltype(a)::rank_dynamic() == 2, "");
    for (Index i = threadIdx.x; i < a.extent(0); i += blockDim.x)
        for (Index j = 0; j < a.extent(1); ++j)
            b(i, j) = a(i, j) * T(10) + T(i);
}

extern "C" __global__ void described(double *data, long long *numbers) {
    cuda::std::mdspan<double, cuda::std::extents<int, 2, dynamic_extent>> whole(data, 3);
    cuda::std::mdspan<double, cuda::std::dextents<int, 2>, cuda::std::layout_left> left(data, 2, 3);
    numbers[0] = whole.size();
    numbers[1] = whole.stride(0);
    numbers[2] = left.stride(1);
    numbers[3] = whole.static_extent(0);
    numbers[4] = whole.mapping().required_span_size();
    numbers[5] = &left(1, 2) - left.data_handle();
    numbers[6] = whole.extents() == left.extents();
    numbers[7] = sizeof(cuda::std::mdspan<double, cuda::std::extents<int>>);
    numbers[8] = whole.empty();
}
"""


@pytest.mark.parametrize("layout", ["layout_stride", "layout_right", "layout_left"])
@pytest.mark.parametrize("index", ["int", "long long"])
def test_a_kernel_takes_views_with_several_axes(xp, layout, index):
    name = f"scaled<float, {index}, cuda::std::{layout}>"
    module = xp.RawModule(code=SOURCE, options=("--std=c++17",), name_expressions=[name])
    order = "F" if layout == "layout_left" else "C"
    host = np.asarray(np.arange(12, dtype="f").reshape(3, 4), order=order)
    a, b = xp.asarray(host), xp.zeros((3, 4), "f", order)
    expected = host * 10 + np.arange(3)[:, None]
    index_type = np.int32 if index == "int" else np.int64
    if layout == "layout_stride":
        a, b, expected = a[:, ::2], b[:, ::2], expected[:, ::2]
    arguments = [array.mdspan(index_type=index_type) for array in (a, b)]
    module.get_function(name)((1,), (2,), tuple(arguments))
    np.testing.assert_array_equal(b.get(), expected)


def test_views_tell_their_shape(xp):
    module = xp.RawModule(code=SOURCE, options=("--std=c++17",))
    numbers = xp.zeros(9, np.int64)
    module.get_function("described")((1,), (1,), (xp.zeros(6), numbers))
    assert numbers.tolist() == [6, 3, 2, 2, 6, 5, 1, 8, 0]


def test_arrays_that_are_no_plain_views_are_refused(xp):
    array = xp.arange(3.0)
    with pytest.raises(ValueError, match="Unsupported index_type"):
        array.mdspan(index_type=np.int16)
    with pytest.raises(RuntimeError, match="0-th dimension has size zero"):
        xp.zeros((0, 3)).mdspan(index_type=np.int32)
    for other in (array[::-1], xp.broadcast_to(array[:1], (4,))):
        with pytest.raises(RuntimeError, match="0-th dimension has non-positive stride"):
            other.mdspan(index_type=np.int64)
        other.mdspan(index_type=np.int64, allow_unsafe=True)


def test_a_view_without_axes_takes_no_lengths(xp):
    source = r"""
#include <cuda/std/mdspan>
template <class T, class Index>
__global__ void next(cuda::std::mdspan<T, cuda::std::extents<Index,>> a) { a() = a() + T(1); }
"""
    name = "next<double, int>"
    module = xp.RawModule(code=source, options=("--std=c++17",), name_expressions=[name])
    a = xp.asarray(2.0)
    module.get_function(name)((1,), (1,), (a.mdspan(index_type=np.int32),))
    assert a.item() == 3
