"""Reading and writing parts of emulated arrays by indices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from support.devices import synchronized
from support.emulated_arrays import assert_same_array, numbers
from support.examples import examples
from tcuda.emulation import ndarray, xp

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]
thorough = settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


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
def test_getitem_gives_the_results_of_numpy(case):
    shape, index = case
    host = np.arange(np.prod(shape)).reshape(shape)
    array = xp.asarray(host)
    assert_same_array(array[on_the_device(index)], host[index])
    assert_same_array(array[index], host[index])  # indices from the host are copied to the device


@thorough
@given(shapes_and_indices, st.booleans())
def test_setitem_gives_the_results_of_numpy(case, scalar):
    shape, index = case
    host = np.zeros(shape, int)
    array = xp.asarray(host)
    value = np.asarray(7) if scalar else np.arange(1, host[index].size + 1).reshape(np.shape(host[index]))
    unique = np.arange(host.size).reshape(shape)[index]
    if np.unique(unique).size < unique.size:
        value = np.asarray(7)  # CuPy does not define the result of several values for one element
    array[on_the_device(index)] = xp.asarray(value)
    host[index] = value
    assert_same_array(array, host)


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
    assert_same_array(array, host)


def test_index_arrays_give_copies():
    array = xp.arange(4)
    for index in (xp.asarray([1, 2]), xp.asarray(2), [0, 1], np.array(1), array > 1, True):
        copied = array[index]
        copied[...] = 9
        assert copied.base is None
    assert array.tolist() == [0, 1, 2, 3]


def test_indices_of_several_kinds_can_be_combined():
    host = numbers("d", (3, 4, 5))
    array = xp.asarray(host)
    rows, columns = [2, 0], [1, 3]
    assert_same_array(array[rows, :, columns], host[rows, :, columns])
    assert_same_array(array[xp.asarray(rows), None, 1], host[rows, None, 1])
    assert_same_array(array[[]], host[[]])
    assert_same_array(array[host > 3], host[host > 3])
    assert_same_array(array[..., xp.asarray([True, False, True, False, True])], host[..., ::2])


@pytest.mark.parametrize("index", [4, -5, (0, 0), 1.5, "a", (..., ...), [0, 4], [1.5]], ids=lambda index: repr(index))
def test_indices_that_do_not_fit_are_refused(index):
    array = xp.arange(4)
    with pytest.raises(IndexError), synchronized():
        array[index]
    with pytest.raises(IndexError), synchronized():
        array[index] = 0
    with pytest.raises(IndexError, match="integer or boolean type"):
        array[xp.asarray([1.0])]


@pytest.mark.parametrize("value", [np.arange(3), [1, 2, 3]], ids=["numpy", "list"])
def test_assignment_from_the_host_is_refused_as_by_cupy(value):
    array = xp.zeros(3)
    for index in (..., slice(None), slice(0, 3)):
        with pytest.raises(ValueError, match="cannot be used for fill"):
            array[index] = value
    array[[0, 1, 2]] = value  # CuPy copies the value to the device if the index is an array
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


def test_arrays_without_axes_are_ends_of_slices():
    x, one, three = xp.arange(6), xp.asarray(1), xp.asarray(3, "f")
    assert x[one:three].tolist() == [1, 2]
    assert x.reshape(2, 3)[:, one:].tolist() == [[1, 2], [4, 5]]
    x[:one] = 9
    assert x[0] == 9
    with pytest.raises(TypeError, match="0-dimensional|only length-1|only 0-dim"):
        x[: xp.ones(2)]


def test_a_range_is_taken_as_indices():
    x = xp.arange(6) * 10
    assert xp.take(x, range(1, 3)).tolist() == x.take(range(1, 3)).tolist() == [10, 20]


def test_tolerances_may_be_arrays_of_the_device():
    x = xp.arange(3.0)
    assert xp.isclose(x, x + 0.05, atol=xp.asarray(0.1), rtol=xp.asarray(0.0)).all()
    with pytest.raises(TypeError):
        xp.isclose(x, x, atol=[0.1, 0.1, 0.1])


def test_flags_can_be_assigned_to_without_effect():
    x = xp.arange(3)
    x.flags.writeable = False
    x[0] = 5
    assert x[0] == 5


def test_ones_without_a_type_are_floats():
    assert xp.ones(2, dtype=None).dtype == float
