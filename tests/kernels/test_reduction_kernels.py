"""Reduction kernels with expressions in CUDA C++: ``xp.ReductionKernel``."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

X = np.random.default_rng(0).random((5, 6, 7)).astype(np.float32)
ORDERS = [lambda a: a, lambda a: a.T, lambda a: a.transpose(1, 0, 2), lambda a: a[:, ::2, ::-1]]


@pytest.fixture
def total(xp):
    return xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")


@pytest.mark.parametrize("view", ORDERS)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2), [0, 1]])
def test_arrays_are_reduced_along_axes(xp, total, view, keepdims, axis):
    result = total(view(xp.asarray(X)), axis=axis, keepdims=keepdims)
    expected = np.asarray(view(X).sum(axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims))
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.get(), expected, rtol=1e-5)


@pytest.mark.parametrize("length", [1, 127, 128, 129, 256, 384, 1000, 4097])
def test_every_element_is_reduced_once(xp, total, length):
    assert total(xp.arange(length, dtype=np.int64)) == length * (length - 1) // 2
    rows = xp.ones((3, length), np.int64)
    assert total(rows, axis=1).tolist() == [length] * 3
    assert total(rows, axis=0).tolist() == [3] * length


def test_a_long_sum_of_floating_point_numbers_is_exact_enough(xp, total):
    host = np.random.default_rng(2).random(1_000_000).astype(np.float32)
    np.testing.assert_allclose(total(xp.asarray(host)).get(), host.sum(dtype=np.float64), rtol=1e-6)


def test_elements_are_mapped_before_and_after(xp):
    norm = xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    np.testing.assert_allclose(norm(xp.asarray(X), axis=1).get(), np.linalg.norm(X, axis=1), rtol=1e-5)


def test_several_inputs_are_broadcast(xp):
    product = xp.ReductionKernel("T x, T y, float32 s", "float64 z", "s * x * y", "a + b", "z = a", "0", "product")
    result = product(xp.asarray(X), xp.asarray(X[0, 0]), 2, axis=(1, 2))
    assert result.dtype == np.float64
    np.testing.assert_allclose(result.get(), (2 * X * X[0, 0]).sum(axis=(1, 2)), rtol=1e-5)


def test_other_types_reduce_too(xp):
    most = xp.ReductionKernel(
        "T x", "T y", "x", "max(a, b)", "y = a", "-1e30", "most", reduce_type="double", preamble="#define UNUSED 1"
    )
    np.testing.assert_array_equal(most(xp.asarray(X), axis=0).get(), X.max(axis=0))


def test_a_kernel_finds_the_place_of_the_maximum(xp):
    place = xp.ReductionKernel(
        "T x",
        "int64 y",
        "best<T>(x, _J)",
        "better(a, b)",
        "y = a.place",
        None,
        "place",
        reduce_type="best<T>",
        preamble="""
        template <typename T> struct best {
            T value; long long place;
            __device__ best() : value(), place(-1) {}
            __device__ best(T v, long long p) : value(v), place(p) {}
        };
        template <typename T> __device__ best<T> better(const best<T> &a, const best<T> &b) {
            if (a.place < 0) return b;
            if (b.place < 0) return a;
            if (a.value == b.value) return best<T>(a.value, a.place < b.place ? a.place : b.place);
            return a.value > b.value ? a : b;
        }
        """,
    )
    for axis in (0, 1):
        np.testing.assert_array_equal(place(xp.asarray(X), axis=axis).get(), X.argmax(axis=axis))


def test_expressions_know_the_sizes(xp):
    mean = xp.ReductionKernel(
        "T x", "T y", "x", "a + b", "y = a * _out_ind.size() / _in_ind.size()", "0", "mean_of_elements"
    )
    np.testing.assert_allclose(mean(xp.asarray(X), axis=(0, 1)).get(), X.mean(axis=(0, 1)), rtol=1e-5)


def test_outputs_may_be_given(xp, total):
    x, out = xp.asarray(X), xp.zeros((5, 7), np.float32)
    assert total(x, axis=1, out=out) is out
    np.testing.assert_allclose(out.get(), X.sum(axis=1), rtol=1e-5)
    other = xp.zeros((7, 5), np.float32).T
    assert total(x, other, axis=1) is other
    np.testing.assert_allclose(other.get(), X.sum(axis=1), rtol=1e-5)


def test_nothing_is_reduced_to_the_identity(xp, total):
    assert total(xp.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]
    assert total(xp.zeros((0, 3)), axis=1).shape == (0,)
    without = xp.ReductionKernel("T x", "T y", "x", "a", "y = a", None, "first")
    with pytest.raises(ValueError, match="zero-size array to reduction operation first which has no identity"):
        without(xp.zeros((0, 3)), axis=0)


def test_a_raw_array_is_reduced_along_its_first_axes_only(xp):
    weighted = xp.ReductionKernel("T x, raw T w", "T y", "x * w[_J]", "a + b", "y = a", "0", "weighted")
    x, w = xp.asarray(X), xp.arange(5, dtype=np.float32)
    np.testing.assert_allclose(weighted(x, w, axis=0).get(), np.tensordot(np.arange(5), X, 1), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="Illegal conditions"):
        weighted(x, w, axis=1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda total, x: total(), TypeError, "Wrong number of arguments for total"),
        (lambda total, x: total(x, wrong=1), TypeError, "Wrong arguments"),
        (lambda total, x: total(x, axis=3), np.exceptions.AxisError, "axis 3 is out of bounds"),
        (lambda total, x: total(x, axis=1.5), TypeError, "float"),
        (lambda total, x: total(x, axis=(0, -3)), ValueError, "duplicate value in 'axis'"),
        (lambda total, x: total(x, x[0], axis=1, out=x[0]), ValueError, "both a positional and keyword"),
        (lambda total, x: total(x, axis=0, out=x), ValueError, "Out shape is mismatched"),
        (lambda total, x: total(x, axis=0, out=x[0].astype(int)), TypeError, "Type is mismatched"),
        (lambda total, x: total(3), ValueError, "Loop size is undecided"),
        (lambda total, x: total([1, 2]), TypeError, "Unsupported type"),
    ],
)
def test_wrong_calls_are_refused(xp, total, call, error, message):
    with pytest.raises(error, match=message):
        call(total, xp.asarray(X))


def test_a_wrong_name_is_refused(xp):
    with pytest.raises(ValueError, match="Invalid kernel name"):
        xp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name="1")


def test_a_kernel_has_properties(xp, total):
    assert (total.nin, total.nout, total.nargs, total.name, total.identity) == (1, 1, 2, "total", "0")
    assert (total.map_expr, total.reduce_expr, total.post_map_expr, total.reduce_type) == ("x", "a + b", "y = a", "T")
    assert total.params is None
    assert (total.reduce_dims, total.preamble, total.options) == (True, "", ())


def test_a_reduction_is_captured_in_a_graph(xp, total):
    x = xp.asarray(X)
    total(x, axis=0)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = total(x, axis=0)
    x[...] = 2
    graph.replay()
    assert (result.get() == 10).all()
