"""Elementwise kernels with an operation in CUDA C++: ``xp.ElementwiseKernel``."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
NUMBERS = "?bhilBHILefd"


@pytest.fixture
def add(xp):
    return xp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")


def test_an_operation_is_applied_to_each_element(xp):
    squared_difference = xp.ElementwiseKernel(
        "float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_difference"
    )
    x, y = xp.asarray(X), xp.asarray(X[::-1].copy())
    result = squared_difference(x, y)
    assert isinstance(result, xp.ndarray)
    np.testing.assert_array_equal(result.get(), (X - X[::-1]) ** 2)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_placeholder_is_the_type_of_the_arrays(xp, add, dtype):
    host = (np.arange(6) % 2).astype(dtype)
    result = add(xp.asarray(host), xp.asarray(host))
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result.get(), host + host)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_elements_may_be_complex(xp, dtype):
    host = np.array([1 + 2j, -3j, 4], dtype)
    kernel = xp.ElementwiseKernel("T x, T s", "T y", "y = x * conj(x) + s", "l2norm")
    np.testing.assert_allclose(kernel(xp.asarray(host), 1j).get(), host * host.conj() + 1j)


def test_a_placeholder_is_a_type_in_the_operation(xp):
    kernel = xp.ElementwiseKernel("T x, U y", "T z", "T t = x; U u = y; z = t * T(u) + T(sizeof(U))", "sizes")
    result = kernel(xp.asarray(X), xp.asarray(X.astype(np.int16)))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.get(), X * X + 2)


@pytest.mark.parametrize("scalar", [2, 2.5, True, np.float64(3), np.int8(-4)])
def test_a_scalar_takes_the_type_of_its_parameter(xp, add, scalar):
    result = add(xp.asarray(X), scalar)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.get(), X + np.float32(scalar))


def test_a_scalar_that_does_not_fit_is_refused(xp, add):
    with pytest.raises(OverflowError):
        add(xp.zeros(3, np.int8), 300)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (X, X[:, :1]),
        (X[0], X),
        (X[..., 0], X[0, 0, 0]),
        (X[:0], X[:1]),
        (np.float32(3).reshape(()), np.float32(4).reshape(())),
    ],
)
def test_arrays_are_broadcast(xp, add, first, second):
    result = add(xp.asarray(first), xp.asarray(second))
    expected = np.asarray(first + second)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.get(), expected)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[::-1, 1:, ::-2],
        lambda a: a.transpose(1, 2, 0),
        lambda a: a[:, :, 1],
    ],
)
def test_arrays_may_have_gaps_and_any_order(xp, add, view):
    result = add(view(xp.asarray(X)), view(xp.asarray(X)))
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result.get(), view(X) * 2)


def test_a_given_output_is_written_and_returned(xp, add):
    out = xp.zeros((4, 3, 2), np.float32).T
    assert add(xp.asarray(X), 1, out) is out
    np.testing.assert_array_equal(out.get(), X + 1)


def test_given_outputs_decide_on_types_first(xp):
    convert = xp.ElementwiseKernel("X x", "Z z", "z = x * 2", "convert")
    out = xp.zeros((2, 3, 4), np.int64)
    np.testing.assert_array_equal(convert(xp.asarray(X), out).get(), X * 2)
    with pytest.raises(KeyError):
        convert(xp.asarray(X))


def test_several_outputs_are_a_tuple(xp):
    both = xp.ElementwiseKernel("T x", "T low, int32 place", "low = x - 1; place = i", "both")
    low, place = both(xp.asarray(X))
    np.testing.assert_array_equal(low.get(), X - 1)
    np.testing.assert_array_equal(place.get(), np.arange(24).reshape(X.shape))
    assert place.dtype == np.int32


def test_a_kernel_returns_a_tuple_or_nothing_if_asked(xp):
    x = xp.asarray(X)
    (result,) = xp.ElementwiseKernel("T x", "T y", "y = x", "copy", return_tuple=True)(x)
    np.testing.assert_array_equal(result.get(), X)
    out = xp.zeros_like(x)
    assert xp.ElementwiseKernel("T x", "T y", "y = x", "copy", no_return=True)(x, out) is None
    np.testing.assert_array_equal(out.get(), X)


def test_a_raw_array_is_indexed_by_the_operation(xp):
    reverse = xp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "add_reverse")
    result = reverse(xp.asarray(X), xp.asarray(X))
    np.testing.assert_array_equal(result.get(), X + X.ravel()[::-1].reshape(X.shape))
    view = xp.asarray(X).transpose(2, 0, 1)
    np.testing.assert_array_equal(
        reverse(xp.asarray(X), view).get(), X + X.transpose(2, 0, 1).ravel()[::-1].reshape(X.shape)
    )


def test_a_raw_array_is_indexed_by_axes_and_tells_its_shape(xp):
    kernel = xp.ElementwiseKernel(
        "raw T x",
        "raw T z",
        """
        ptrdiff_t index[] = {i % x.shape()[1], i / x.shape()[1]};
        z[i] = x[index] + x.size() + x.strides()[0];
        """,
        "transpose",
    )
    square = np.arange(9.0).reshape(3, 3)
    result = kernel(xp.asarray(square), size=9)
    assert result.shape == (9,)
    np.testing.assert_array_equal(result.get(), (square.T + 9 + 24).ravel())


def test_axes_stay_apart_if_asked(xp):
    kernel = xp.ElementwiseKernel("T x", "int64 z", "z = _ind.get()[1]", "second_axis", reduce_dims=False)
    np.testing.assert_array_equal(kernel(xp.asarray(X)).get(), np.indices(X.shape)[1])


def test_an_input_that_is_not_const_may_be_written(xp):
    x = xp.asarray(X)
    assert xp.ElementwiseKernel("_non_const T x", "", "x += 1", "increment")(x) == ()
    np.testing.assert_array_equal(x.get(), X + 1)


def test_a_kernel_has_a_preamble_and_statements_around_its_loop(xp):
    kernel = xp.ElementwiseKernel(
        "T x",
        "T y",
        "y = twice(x) + offset",
        "prepared",
        preamble="template <typename V> __device__ V twice(V v) { return v + v; }",
        loop_prep="const int offset = THREE",
        after_loop="(void)offset",
        options=("-DTHREE=3",),
    )
    np.testing.assert_array_equal(kernel(xp.asarray(X)).get(), X * 2 + 3)


def test_a_kernel_counts_by_atomics(xp):
    histogram = xp.ElementwiseKernel("int32 x", "raw int32 counts", "atomicAdd(&counts[x], 1)", "histogram")
    places = np.random.default_rng(1).integers(0, 10, 1000).astype(np.int32)
    counts = xp.zeros(10, np.int32)
    histogram(xp.asarray(places), counts)
    np.testing.assert_array_equal(counts.get(), np.bincount(places, minlength=10))


def test_a_kernel_has_properties(add):
    assert (add.nin, add.nout, add.nargs) == (2, 1, 3)
    assert add.name == add.__name__ == "add"
    assert add.operation == "z = x + y"
    assert add.reduce_dims is True
    assert add.preamble == ""
    assert add.no_return is False
    assert add.return_tuple is False
    assert add.kwargs == {}
    assert [(p.name, p.ctype, p.dtype, p.raw, p.is_const) for p in add.in_params] == [
        ("x", "T", None, False, True),
        ("y", "T", None, False, True),
    ]
    assert [(p.name, p.is_const) for p in add.out_params] == [("z", False)]
    assert [p.name for p in add.params] == ["x", "y", "z", "_ind"]


def test_sources_are_cached_by_types(xp, add):
    with pytest.warns(UserWarning, match="No codes are cached"):
        assert add.cached_codes == {}
    x = xp.asarray(X)
    add(x, x)
    add(x, x)
    assert "z = x + y" in add.cached_code
    add(x.astype(np.float64), 1)
    assert len(add.cached_codes) == 2
    with pytest.warns(UserWarning, match="use `.cached_codes`"):
        assert add.cached_code


@pytest.mark.parametrize("block_size", [1, 33, 1024])
def test_the_size_of_blocks_changes_no_result(xp, add, block_size):
    np.testing.assert_array_equal(add(xp.asarray(X), 1, block_size=block_size).get(), X + 1)


def test_a_size_is_needed_without_other_arrays_than_raw_ones(xp):
    raw = xp.ElementwiseKernel("raw T x", "T y", "y = x[i]", "raw")
    x = xp.arange(4.0)
    with pytest.raises(ValueError, match="Loop size is undecided"):
        raw(x)
    np.testing.assert_array_equal(raw(x, size=2).get(), [0, 1])
    assert raw(x, size=0).shape == (0,)
    np.testing.assert_array_equal(raw(x, xp.zeros(3)).get(), [0, 1, 2])
    mixed = xp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[i]", "mixed")
    with pytest.raises(ValueError, match="Specified 'size' can be used only"):
        mixed(x, x, size=4)
    with pytest.raises(ValueError, match="Output array size is Undecided"):
        xp.ElementwiseKernel("T x", "raw T y", "y[i] = x", "undecided")(x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda add, x: add(x), TypeError, "Wrong number of arguments for 'add'"),
        (lambda add, x: add(x, x, x, x), TypeError, "Wrong number of arguments"),
        (lambda add, x: add(x, [1, 2]), TypeError, "Unsupported type <class 'list'>"),
        (lambda add, x: add(x, np.ones(4, np.float32)), TypeError, "Unsupported type <class 'numpy.ndarray'>"),
        (lambda add, x: add(x, None), TypeError, "Unsupported type"),
        (lambda add, x: add(x, x.astype(float)), TypeError, "Type is mismatched"),
        (lambda add, x: add(x, x, x.astype(int)), TypeError, "Type is mismatched"),
        (lambda add, x: add(x, 1, 2), TypeError, ""),
        (lambda add, x: add(x, 1, x[0]), ValueError, "Out shape is mismatched"),
        (lambda add, x: add(x, x[:, :2]), ValueError, "could not be broadcast"),
        (lambda add, x: add(x, 1, block_size=0), ValueError, "block_size must be greater than zero"),
        (lambda add, x: add(x, 1, wrong=1), TypeError, "Wrong arguments"),
        (lambda add, x: add(1, 2), ValueError, "Loop size is undecided"),
    ],
)
def test_wrong_calls_are_refused(xp, add, call, error, message):
    with pytest.raises(error, match=message or None):
        call(add, xp.asarray(X))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("T x", "T y", "y = x", "1"), ValueError, "Invalid kernel name"),
        (("T i", "T y", "y = i"), ValueError, "Can not use 'i' as a parameter name"),
        (("x", "T y", "y = x"), Exception, "Syntax error"),
        (("row T x", "T y", "y = x"), Exception, "Unknown keyword"),
        (("flaot32 x", "T y", "y = x"), TypeError, "flaot32"),
    ],
)
def test_wrong_kernels_are_refused(xp, arguments, error, message):
    with pytest.raises(error, match=message):
        xp.ElementwiseKernel(*arguments)


def test_an_operation_that_does_not_compile_is_refused(xp):
    kernel = xp.ElementwiseKernel("T x", "T y", "T q = x;\ny = q + missing", "wrong")
    with pytest.raises(Exception, match="missing") as caught:
        kernel(xp.asarray(X))
    assert type(caught.value).__name__ == "CompileException"


def test_a_kernel_runs_on_the_stream_that_is_given(xp, add):
    stream = tcuda.Stream()
    x = xp.asarray(X)
    tcuda.synchronize()
    result = add(x, 1, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(result.get(), X + 1)


def test_a_kernel_is_captured_in_a_graph(xp, add):
    x = xp.asarray(X)
    add(x, x)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = add(x, x)
    x[...] = 5
    graph.replay()
    assert (result.get() == 10).all()


def test_the_headers_of_cupy_define_a_constant_and_traits(xp):
    area = xp.ElementwiseKernel(
        "T radius",
        "T area",
        """
        typedef typename cupy::type_traits::conditional<sizeof(T) == 4, int, long long>::type bits;
        area = cupy::type_traits::is_same<bits, int>::value ? (T)(M_PI * radius * radius) : (T)0;
        """,
        "area",
    )
    assert area(xp.asarray([1, 2], dtype=xp.float32)).get().tolist() == pytest.approx([np.pi, 4 * np.pi])
    assert area(xp.asarray([1.0])).get().tolist() == [0]
