"""Functions of the array namespace that take Python functions, and small functions on arrays as a whole."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

pytestmark = pytest.mark.usefixtures("runtime")


def test_a_vectorized_function_is_applied_to_each_element():
    xp = tcuda.xp

    def clipped(x, low):
        if x < low:
            return low
        return x

    doubled = xp.vectorize(lambda x: x + x)
    assert doubled(xp.arange(6, dtype="int8").reshape(2, 3)).dtype == "int8"
    assert xp.vectorize(clipped)(xp.asarray([1.0, 5.0]), 2.0).tolist() == [2, 5]
    longest = xp.vectorize(lambda x, y: xp.hypot(x, y))(xp.asarray([[3.0], [6.0]]), xp.asarray([4.0, 8.0]))
    assert longest.get() == pytest.approx(np.array([[5, np.hypot(3, 8)], [np.hypot(6, 4), 10]]))
    total, quotient = xp.vectorize(lambda x, y: (x + y, x / y))(xp.asarray([2, 4]), xp.asarray([1, 2]))
    assert (total.tolist(), quotient.tolist()) == ([3, 6], [2, 2])
    assert doubled(xp.zeros(0, "float32")).dtype == "float32"


def test_what_cupy_cannot_vectorize_is_refused():
    xp = tcuda.xp
    for options in ({"excluded": [0]}, {"signature": "()->()"}):
        with pytest.raises(NotImplementedError, match="option currently"):
            xp.vectorize(abs, **options)
    with pytest.raises(NotImplementedError):
        xp.vectorize(lambda x: x, otypes="d")(xp.ones(2))
    with pytest.raises(ValueError, match="Loop size is undecided"):
        xp.vectorize(lambda x: x)(1.0)
    with pytest.raises(TypeError):
        xp.vectorize(lambda x: None)(xp.ones(2))


@pytest.mark.eager
def test_a_vectorized_function_returns_scalars_of_one_type():
    with pytest.raises(TypeError):
        tcuda.xp.vectorize(lambda x: x if x > 0 else tcuda.xp.float64(0))(tcuda.xp.asarray([-1, 1], "float32"))


def test_piecewise_sets_the_value_of_the_last_condition_that_holds():
    xp = tcuda.xp
    x = xp.arange(5)
    assert xp.piecewise(x, [x > 0, x > 2], [1, 2, 9]).tolist() == [9, 1, 1, 2, 2]
    assert xp.piecewise(x, [x > 3], [xp.asarray(7.9)]).tolist() == [0, 0, 0, 0, 7]
    with pytest.raises(NotImplementedError, match="Callable functions"):
        xp.piecewise(x, [x > 3], [abs])
    with pytest.raises(ValueError, match=r"with 1 condition\(s\)"):
        xp.piecewise(x, [x > 3], [1, 2, 3])


def test_functions_are_applied_along_axes():
    xp = tcuda.xp
    host = np.arange(24.0).reshape(2, 3, 4)
    array = xp.asarray(host)
    for function in (lambda a: a.sum(), lambda a: a[::-1], lambda a: a[:, None] * a[:2]):
        for axis in (0, -1):
            result = xp.apply_along_axis(function, axis, array)
            np.testing.assert_array_equal(result.get(), np.apply_along_axis(function, axis, host))
    for axes in (1, [0, 2]):
        result = xp.apply_over_axes(xp.sum, array, axes)
        np.testing.assert_array_equal(result.get(), np.apply_over_axes(np.sum, host, axes))
    with pytest.raises(ValueError, match="iteration dimensions are 0"):
        xp.apply_along_axis(xp.sum, 0, xp.zeros((3, 0)))
    with pytest.raises(ValueError, match="correct shape"):
        xp.apply_over_axes(lambda a, axis: a.sum(), array, 0)


def test_broadcast_has_the_common_shape():
    xp = tcuda.xp
    column, row = xp.ones((2, 1)), xp.zeros(3)
    made = xp.broadcast(column, row)
    assert (made.shape, made.nd, made.size) == ((2, 3), 2, 6)
    assert [value.shape for value in made.values] == [(2, 3), (2, 3)]
    with pytest.raises(ValueError, match="could not be broadcast together"):
        xp.broadcast(xp.ones(2), row)


def test_windows_and_other_strides_are_views():
    xp = tcuda.xp
    array = xp.arange(6.0)
    windows = xp.lib.stride_tricks.sliding_window_view(array, 3)
    np.testing.assert_array_equal(windows.get(), np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3))
    pairs = xp.lib.stride_tricks.as_strided(array, (3, 2), (16, 8))
    array[2] = -1
    assert pairs.tolist() == [[0, 1], [-1, 3], [4, 5]]
    assert windows[0].tolist() == [0, 1, -1]
    with pytest.raises(NotImplementedError):
        xp.lib.stride_tricks.sliding_window_view(array, 3, writeable=True)


def test_arrays_can_be_required_and_described(capsys):
    xp = tcuda.xp
    array = xp.ones((2, 3))
    assert xp.require(array) is array
    assert xp.require(array, "float32", ["F"]).flags.f_contiguous
    assert xp.require(array[:1], requirements="O").flags.owndata
    for requirements in (["C", "F"], ["W"]):
        with pytest.raises(ValueError, match="Cannot specify both|Incorrect flag"):
            xp.require(array, requirements=requirements)
    low, high = xp.byte_bounds(array[::-1])
    assert (low, high) == (array.data.ptr, array.data.ptr + array.nbytes)
    assert [places.tolist() for places in xp.mask_indices(2, xp.triu)] == [[0, 0, 1], [0, 1, 1]]
    with pytest.raises(ValueError, match="Infs or NaNs"):
        xp.asarray_chkfinite([1.0, np.inf])
    with pytest.warns(DeprecationWarning, match="row_stack"):
        assert xp.row_stack([array, array]).shape == (4, 3)
    xp.who({"a": array, "b": array, "other": 3})
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4].split() == ["a", "2", "x", "3", "48", "float64"]
    assert lines[-3].split() == ["b", "(a)", "2", "x", "3", "48", "float64"]
    assert lines[-1].split()[-1] == "48"


def fill_borders(line, width, axis, options):
    """Fill the borders of a line, as the example of ``numpy.pad`` does."""
    value = options.get("padder", 10) + axis
    line[: width[0]] = value
    if width[1]:
        line[-width[1] :] = value


@pytest.mark.parametrize("width", [2, (1, 0), ((1, 2), (0, 1))])
@pytest.mark.parametrize("options", [{}, {"padder": 100}])
def test_a_function_pads_the_lines_of_an_array_in_place(width, options):
    xp = tcuda.xp
    host = np.arange(6.0).reshape(2, 3)
    kinds = set()

    def fill(line, *others):
        kinds.add(type(line))
        fill_borders(line, *others)

    result = xp.pad(xp.asarray(host), width, fill, **options)
    np.testing.assert_array_equal(result.get(), np.pad(host, width, fill_borders, **options))
    assert kinds == {xp.ndarray}
