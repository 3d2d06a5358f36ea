"""The plan of a call, against NumPy's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tcuda.jiterator import _source
from tcuda.jiterator._layout import layout_of, multiplier_and_shift
from tcuda.jiterator._plan import Plan, plan_of

if TYPE_CHECKING:
    import numpy.typing as npt


def planned(*arrays: npt.NDArray[Any]) -> Plan:
    return plan_of(
        tuple(array.shape for array in arrays),
        tuple(array.strides for array in arrays),
        tuple(array.itemsize for array in arrays),
    )


def walked(plan: Plan, array: npt.NDArray[Any], place: int) -> npt.NDArray[Any]:
    """Return the elements of ``array``, input ``place``, in the shape of the output, as a kernel reads them."""
    places = [0]
    for axis in plan.loop:
        places = [before + step * axis.strides[place] for step in range(axis.length) for before in places]
    base = array.__array_interface__["data"][0]
    whole: Any = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    offset = base - whole.__array_interface__["data"][0]
    flat = whole.reshape(-1, order="A").view(np.uint8)
    read = [flat[offset + at : offset + at + array.itemsize].view(array.dtype)[0] for at in places]
    made = np.array(read, array.dtype).reshape(plan.made)
    return made if plan.axes is None else made.transpose(plan.axes)


@st.composite
def views(draw: st.DrawFn) -> list[npt.NDArray[Any]]:
    """Return views of several arrays that can be broadcast to one shape."""
    shape = draw(st.lists(st.integers(1, 4), max_size=4))
    arrays = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(len(shape))))
        steps = [draw(st.sampled_from([1, 2, -1])) for _ in shape]
        lengths = [draw(st.sampled_from([1, length])) for length in shape]
        memory = [abs(steps[axis]) * lengths[axis] for axis in order]
        base = np.arange(int(np.prod(memory)), dtype=draw(st.sampled_from([np.int8, np.float32, np.float64])))
        view = base.reshape(memory).transpose(np.argsort(order) if shape else ())
        view = view[tuple(slice(None, None, step) for step in steps)]
        dropped = draw(st.integers(0, len(shape)))
        arrays.append(view[(0,) * dropped])
    return arrays


@given(views())
def test_a_plan_reads_the_elements_of_every_input(arrays: list[npt.NDArray[Any]]) -> None:
    plan = planned(*arrays)
    expected = np.broadcast_arrays(*arrays)
    assert plan.shape == expected[0].shape
    assert plan.size == expected[0].size
    for place, (array, whole) in enumerate(zip(arrays, expected, strict=True)):
        np.testing.assert_array_equal(walked(plan, array, place), whole)


@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_of_one_dense_layout_are_one_axis(order: Any) -> None:
    array = np.zeros((3, 4, 5), order=order)
    plan = planned(array, array)
    assert plan.kernel == _source.CONTIGUOUS
    assert [axis.length for axis in plan.loop] == [60]


def test_outputs_have_the_layout_of_the_inputs() -> None:
    array = np.zeros((2, 3, 4)).transpose(1, 2, 0)
    plan = planned(array, np.zeros(2))
    made = np.zeros(plan.made)
    assert plan.axes is not None
    assert made.transpose(plan.axes).strides == array.strides


def test_a_broadcast_input_has_no_say_in_the_layout_of_outputs() -> None:
    plan = planned(np.broadcast_to(np.zeros(3)[:, None], (3, 4)), np.zeros((3, 4)))
    assert plan.axes is None
    assert plan.kernel == _source.STRIDED


def test_offsets_beyond_31_bits_take_the_wide_kernel() -> None:
    wide = plan_of(((2, 3),), ((2**31, 4),), (4,))
    assert wide.kernel == _source.WIDE
    assert plan_of(((2, 3),), ((2**30, 4),), (4,)).kernel == _source.STRIDED


def test_shapes_that_cannot_be_broadcast_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"\(2, 3\), \(2, 4\)\. Lengths 3 and 4 of axis -1 differ"):
        planned(np.zeros((2, 3)), np.zeros((2, 4)))


def test_an_empty_input_makes_an_empty_output() -> None:
    plan = planned(np.zeros((3, 0)), np.zeros(1))
    assert (plan.shape, plan.size) == ((3, 0), 0)


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_a_division_is_a_multiplication_and_a_shift(divisor: int, number: int) -> None:
    multiplier, shift = multiplier_and_shift(divisor)
    assert multiplier < 2**32
    high = number * multiplier >> 32
    assert high + number < 2**32
    assert high + number >> shift == number // divisor


@pytest.mark.parametrize("kernel", [_source.STRIDED, _source.WIDE])
def test_a_layout_is_one_structure_with_the_axes(kernel: str) -> None:
    plan = planned(np.zeros((3, 5))[:, ::2])
    layout = layout_of(kernel, plan.loop, 1)
    words = layout["words"].ravel()
    most = _source.NARROW_AXES if kernel == _source.STRIDED else _source.WIDE_AXES
    assert layout.size == 1
    assert words[0] == 2
    assert list(words[1:3]) == [3, 3]
    assert list(words[-most:][:2]) == [16, 40]
