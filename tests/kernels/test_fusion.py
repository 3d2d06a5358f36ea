"""Fused functions: ``xp.fuse``."""

from __future__ import annotations

import numpy as np
import pytest

import tcuda

X = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
Y = np.linspace(-1, 1, 4)


def test_the_operations_of_a_function_run_as_one_kernel(xp):
    @xp.fuse()
    def squared_difference(x, y):
        """Return the square of the difference."""
        return (x - y) * (x - y)

    result = squared_difference(xp.asarray(X), xp.asarray(Y))
    assert isinstance(result, xp.ndarray)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result.get(), (X - Y) ** 2)
    assert squared_difference.__name__ == "squared_difference"
    assert squared_difference.__doc__ == "Return the square of the difference."


@pytest.mark.parametrize(
    "decorate", [lambda xp: xp.fuse, lambda xp: xp.fuse(), lambda xp: xp.fuse(kernel_name="other")]
)
def test_the_decorator_takes_no_arguments_or_a_name(xp, decorate):
    @decorate(xp)
    def twice(x):
        return x + x

    np.testing.assert_array_equal(twice(xp.asarray(X)).get(), X + X)


def test_without_an_array_of_the_device_the_function_runs_as_always(xp):
    @xp.fuse
    def total(x, y):
        return float(x.sum()) + y if isinstance(x, np.ndarray) else x + y

    assert total(X, 1) == X.sum() + 1
    assert total(2, 3) == 5


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("scalar", [2, 2.5, np.float32(2), np.float64(3)])
def test_types_are_those_of_the_operations_one_by_one(xp, dtype, scalar):
    def function(x, s):
        return x * s + 1

    x = xp.asarray(X).astype(dtype)
    result = xp.fuse(kernel_name="fused")(function)(x, scalar)
    assert result.dtype == function(x, scalar).dtype
    np.testing.assert_allclose(result.get(), function(x, scalar).get(), rtol=2e-3)


def test_a_fused_function_writes_to_its_arguments(xp):
    @xp.fuse()
    def step(x, y, z):
        x += 2
        xp.multiply(x, y, out=z)
        y[...] = 7

    x, y, z = xp.asarray(X), xp.asarray(X), xp.zeros_like(xp.asarray(X))
    assert step(x, y, z) is None
    np.testing.assert_array_equal(x.get(), X + 2)
    np.testing.assert_array_equal(z.get(), (X + 2) * X)
    assert (y.get() == 7).all()


def test_a_scalar_that_no_array_meets_is_returned_as_an_array(xp):
    @xp.fuse()
    def f(x, y):
        return -x

    assert f(3j, xp.zeros(2)).tolist() == [-3j, -3j]


def test_a_fused_function_copies_to_its_arguments(xp):
    @xp.fuse()
    def f(x, y):
        xp.copyto(y, x)
        return xp.i0(x)

    x, y = xp.arange(3.0), xp.zeros(3, "f")
    result = f(x, y)
    assert y.tolist() == [0, 1, 2]
    np.testing.assert_allclose(result.get(), np.i0(np.arange(3.0)), rtol=1e-6)


def test_a_fused_function_returns_new_arrays_in_a_tuple(xp):
    @xp.fuse()
    def both(x, y):
        return x + y, x.astype(np.int64), x

    x = xp.asarray(X)
    total, whole, same = both(x, 1)
    np.testing.assert_array_equal(total.get(), X + 1)
    assert whole.dtype == np.int64
    assert same is not x
    np.testing.assert_array_equal(same.get(), X)


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        (lambda xp, x, y: xp.sum(x * y), lambda: (X * Y).sum()),
        (lambda xp, x, y: xp.sqrt(xp.sum(x * y, axis=1) + 10), lambda: np.sqrt((X * Y).sum(axis=1) + 10)),
        (lambda xp, x, y: xp.amax(x + y, axis=0), lambda: (X + Y).max(axis=0)),
        (lambda xp, x, y: xp.any(x > 100), lambda: False),
        (lambda xp, x, y: xp.prod(x, axis=(0, 1)), lambda: X.prod(axis=(0, 1))),
    ],
)
def test_a_function_may_reduce_at_its_end(xp, reduce, expected):
    result = xp.fuse(kernel_name="fused")(lambda x, y: reduce(xp, x, y))(xp.asarray(X), xp.asarray(Y))
    np.testing.assert_allclose(result.get(), expected(), rtol=1e-5)


def test_conditions_are_written_with_where(xp):
    @xp.fuse()
    def clipped(x, y):
        return xp.where(x > 5, xp.clip(x, 6, 8), y)

    result = clipped(xp.asarray(X), xp.asarray(Y))
    np.testing.assert_array_equal(result.get(), np.where(X > 5, np.clip(X, 6, 8), Y))


def test_none_is_passed_on(xp):
    @xp.fuse()
    def add(x, y, z):
        return x * z if y is None else x + y + z

    x = xp.asarray(X)
    np.testing.assert_array_equal(add(x, None, x).get(), X * X)
    np.testing.assert_array_equal(add(x, x, x).get(), X + X + X)


def test_a_fused_function_calls_another(xp):
    @xp.fuse()
    def inner(x, y):
        return x - y * 2, x + y

    @xp.fuse()
    def outer(x, y, z):
        low, high = inner(x, y)
        return low * high + z

    x = xp.asarray(X)
    np.testing.assert_array_equal(outer(x, x, 3).get(), -X * (X + X) + 3)


def test_the_function_runs_once_for_each_combination_of_types(xp):
    calls = []

    @xp.fuse()
    def add(x, y):
        calls.append(x.dtype)
        return x + y

    x = xp.asarray(X)
    for _ in range(3):
        add(x, x[:1])
    assert len(calls) == 1
    add(x.astype(np.float64), x)
    add(x[0], x)
    assert len(calls) == 3
    add.clear_cache()
    add(x, x)
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x if x > 0 else -x, TypeError, "Cannot convert to Python scalar"),
        (lambda x: x + float(x), TypeError, "Cannot convert to Python scalar"),
        (lambda x: x + x.shape[0], NotImplementedError, "`shape` is not supported"),
        (lambda x: [x], ValueError, "must be `None`"),
        (lambda x: x + np.ones(3), TypeError, "oncrete ndarray"),
        (lambda x: x[1:2], NotImplementedError, "full range"),
    ],
)
def test_a_function_that_cannot_be_fused_is_refused(xp, function, error, message):
    with pytest.raises(error, match=message):
        xp.fuse(kernel_name="fused")(function)(xp.asarray(X))


def test_a_kernel_needs_a_name_that_a_lambda_expression_does_not_have(xp):
    with pytest.raises(xp.cuda.compiler.CompileException):
        xp.fuse(lambda x: x + 1)(xp.asarray(X))
    with pytest.raises(AttributeError, match="sqroot"):  # the function runs before the compiler
        xp.fuse(lambda x: xp.sqroot(x))(xp.asarray(X))


@pytest.mark.emulated
def test_the_refusal_of_a_name_says_where_a_name_is_given(xp):
    with pytest.raises(
        xp.cuda.compiler.CompileException, match=r"'<lambda>' is no name of a kernel\. Give a name: cupy"
    ):
        xp.fuse(lambda x: x + 1)(xp.asarray(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arithmetic_of_scalars_does_not_widen_arrays(xp, dtype):
    @xp.fuse()
    def scale(x, s, t):
        return x * (s * t + 1)

    result = scale(xp.asarray(X).astype(dtype), 2.5, 2)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.get(), X * 6)


@pytest.mark.parametrize("scalar", [3, 2.5, True])
def test_scalars_alone_have_the_smallest_type_of_their_kind(xp, scalar):
    @xp.fuse()
    def twice(x, s):
        return s + s

    result = twice(xp.asarray(X), scalar)
    assert result.dtype == {int: np.int8, float: np.float16, bool: np.bool_}[type(scalar)]
    assert result.shape == X.shape
    assert (result.get() == scalar + scalar).all() if scalar is not True else result.get().all()


@pytest.mark.parametrize(
    ("dtype", "scalar", "expected"),
    [(np.int8, 2.5, np.float16), (np.int16, 2.5, np.float32), (np.int8, 3, np.int8), (np.float32, 1j, np.complex64)],
)
def test_a_python_scalar_needs_a_type_of_its_kind_only(xp, dtype, scalar, expected):
    result = xp.fuse(kernel_name="fused")(lambda x, s: x + s)(xp.asarray(X).astype(dtype), scalar)
    assert result.dtype == expected
    np.testing.assert_array_equal(result.get(), X + scalar)


def test_a_function_may_use_reductions_as_operands(xp):
    @xp.fuse()
    def normalized(x):
        return (x - x.min(axis=0)) / xp.sum(x, axis=0)

    np.testing.assert_allclose(normalized(xp.asarray(X)).get(), (X - X.min(axis=0)) / X.sum(axis=0), rtol=1e-6)


def test_axes_are_added_and_reversed(xp):
    @xp.fuse()
    def outer(x, y):
        return x[::-1, None] * y

    np.testing.assert_array_equal(outer(xp.asarray(X[:, 0]), xp.asarray(X[0])).get(), X[::-1, 0, None] * X[0])


def test_arguments_are_arrays_and_scalars(xp):
    with pytest.raises(TypeError, match="Invalid argument type for 'add'"):
        xp.fuse(kernel_name="add")(lambda x, y: x + y)(xp.asarray(X), [1, 2])


def test_shapes_must_fit_together(xp):
    with pytest.raises(ValueError, match="broadcast"):
        xp.fuse(kernel_name="fused")(lambda x, y: x + y)(xp.zeros(3), xp.zeros(4))


def test_a_fused_function_is_captured_in_a_graph(xp):
    fused = xp.fuse(kernel_name="fused")(lambda x, y: xp.sqrt(x) + y)
    x, y = xp.asarray(X), xp.asarray(X)
    fused(x, y)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = fused(x, y)
    x[...] = 16
    graph.replay()
    np.testing.assert_array_equal(result.get(), 4 + X)
