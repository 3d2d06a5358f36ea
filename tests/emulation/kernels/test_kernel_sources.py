"""The sources of elementwise and reduction kernels, and the layouts of arrays in them."""

from __future__ import annotations

import numpy as np
import pytest

from tcuda.emulation import xp
from tcuda.emulation.kernels import elementwise, reduction
from tcuda.emulation.kernels.parts import generated_source
from tcuda.emulation.kernels.parts.array_layouts import Layout, broadcast, broadcast_shape, layout_of, reduce_axes

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("runtime")]

FLOAT = np.dtype(np.float32)


def elementwise_source(kernel, *values, shape):
    forms = [generated_source.form_of(value) for value in values]
    return elementwise.source_of(
        kernel, forms, generated_source.loop_of("_ind", shape), [("T", FLOAT)], **kernel.kwargs
    )


def test_an_elementwise_kernel_has_elements_arrays_and_scalars():
    kernel = xp.ElementwiseKernel("T x, raw T y, T s", "T z", "z = x + y[i] * s", "f", preamble="#define ONE 1")
    x = layout_of(xp.zeros((2, 3), np.float32))
    text = elementwise_source(kernel, x, layout_of(x.array.T), np.float32(2), x, shape=(2, 3))
    assert "typedef float T;" in text
    assert '#line 1 "f: preamble"\n#define ONE 1\n' in text
    assert (
        'extern "C" __global__ void f(float *_data_x, float *_data_y, const float s, float *_data_z, '
        "const _Layout _layout)"
    ) in text
    assert "struct _Layout { ptrdiff_t words[14]; };" in text
    assert "const CArray<float, 2, 1, 1> _raw_x(_data_x, _layout.words + 0, _layout.words + 2);" in text
    assert "const CArray<float, 2, 0, 1> y(_data_y, _layout.words + 4, _layout.words + 6);" in text
    assert "CIndexer<2, 1> _ind(_layout.words + 12);" in text
    assert "const T &x = _raw_x[_ind.get()];\n" in text
    assert "\nT &z = _raw_z[_ind.get()];\n" in text
    assert "_raw_y" not in text
    assert '#line 1 "f: operation"\nz = x + y[i] * s\n' in text


def test_a_kernel_may_write_to_an_input_that_is_not_const():
    kernel = xp.ElementwiseKernel("_non_const T x", "", "x += 1", "f")
    text = elementwise_source(kernel, layout_of(xp.zeros(3, np.float32)), shape=(3,))
    assert "\nT &x = _raw_x[_ind.get()];\n" in text


def test_statements_stand_before_and_after_the_loop():
    kernel = xp.ElementwiseKernel("T x", "T z", "z = x", "f", loop_prep="int before = 1", after_loop="before = 2")
    x = layout_of(xp.zeros(3, np.float32))
    text = elementwise_source(kernel, x, x, shape=(3,))
    assert text.index("int before = 1") < text.index("CUPY_FOR") < text.index("z = x") < text.index("before = 2")


def test_the_arguments_are_those_of_the_head():
    x, y = xp.zeros((2, 3), np.float32), xp.zeros((3,), np.float64)
    arguments = generated_source.arguments_of([layout_of(x), np.int64(4), broadcast(y, (2, 3))], [(2, 3)])
    assert arguments[0] is x
    assert arguments[1] == 4
    assert arguments[2] is y
    assert np.frombuffer(arguments[3].tobytes(), np.int64).tolist() == [2, 3, 12, 4, 2, 3, 0, 8, 2, 3]


def test_a_reduction_kernel_has_its_expressions():
    kernel = xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm", reduce_type="double")
    x, y = layout_of(xp.zeros(6, np.float32)), layout_of(xp.zeros((), np.float32))
    forms = [generated_source.form_of(x), generated_source.form_of(y)]
    loops = [generated_source.loop_of("_in_ind", (6,)), generated_source.loop_of("_out_ind", ())]
    text = reduction.source_of(kernel, forms, loops, [("T", FLOAT)], "int")
    assert "typedef double _type_reduce;" in text
    assert "#define REDUCE(a, b) (a + b)" in text
    assert "#define POST_MAP(a) (y = sqrt(a))" in text
    assert "_type_reduce _s = _type_reduce(0);" in text
    assert "const T &x = _raw_x[_in_ind.get()];" in text
    assert "T &y = _raw_y[_out_ind.get()];" in text
    assert "CIndexer<0, 1> _out_ind(" in text


@pytest.mark.parametrize(
    ("shape", "strides", "joined"),
    [
        ((2, 3, 4), [(96, 32, 8)], ((24,), [(8,)])),
        ((2, 3, 4), [(96, 32, 8), (0, 0, 8)], ((6, 4), [(32, 8), (0, 8)])),
        ((2, 3, 4), [(8, 16, 48)], ((2, 3, 4), [(8, 16, 48)])),
        ((2, 1, 4), [(32, 5, 8)], ((8,), [(8,)])),
        ((1, 1), [(8, 8)], ((1,), [(8,)])),
        ((5,), [(-8,)], ((5,), [(-8,)])),
    ],
)
def test_axes_are_joined_where_no_array_has_gaps(shape, strides, joined):
    array = xp.zeros(1)
    layouts = [Layout(array, shape, steps) for steps in strides]
    raw = layout_of(xp.zeros((2, 2)))
    values = [*layouts, raw, np.float64(1)]
    assert reduce_axes(values, [False] * len(layouts) + [True, False], shape) == joined[0]
    assert [value.strides for value in values[: len(layouts)]] == joined[1]
    assert values[-2:] == [raw, 1]


def test_contiguous_layouts_are_told_from_others():
    array = xp.zeros((2, 3, 4))
    assert layout_of(array).c_contiguous
    assert layout_of(array[:, :1]).c_contiguous is False
    assert layout_of(array[:1]).c_contiguous
    assert layout_of(array[0, 0, 0]).c_contiguous
    assert layout_of(array.transpose()).transposed((2, 1, 0)).c_contiguous


def test_shapes_that_do_not_fit_together_are_refused():
    assert broadcast_shape([(2, 1), (3,)]) == (2, 3)
    with pytest.raises(ValueError, match=r"could not be broadcast together with shapes \(2,\) \(3,\)"):
        broadcast_shape([(2,), (3,)])
