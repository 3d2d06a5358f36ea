"""Calls of jiterator functions, against NumPy."""

from __future__ import annotations

import contextlib
import copy
import doctest
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from tcuda.jiterator._dtypes import ELEMENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from support.fixture_types import Changes, OutputOf
    from tcuda._runtime.protocol import Runtime

AXPBY = "template <typename T> T axpby(T x, T y, T alpha, T beta) { return alpha * x + beta * y; }"
DTYPES = [name for name in ELEMENT_TYPES if name != "bfloat16"]


@pytest.fixture
def two_devices(runtime: Runtime) -> None:
    if tcuda.device_count() < 2:
        pytest.skip("needs two devices")


@pytest.fixture(scope="module")
def axpby() -> Callable[..., Any]:
    return tcuda.jiterator._create_jit_fn(AXPBY, alpha=1, beta=1)


def values(shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    size = int(np.prod(shape))
    return (np.arange(size) % 7 + 1).astype(dtype).reshape(shape)


@pytest.mark.long
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_computes_in_itself(xp: Any, axpby: Callable[..., Any], name: str) -> None:
    x = values((9,), name)
    result = axpby(xp.asarray(x), xp.asarray(x))
    assert result.dtype == name
    np.testing.assert_array_equal(result.get(), x + x)


@pytest.mark.parametrize(
    ("common", "names"),
    [
        ("int64", ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"]),
        ("float16", ["int64"]),
        ("float32", ["bool", "int8", "int16", "int32", "int64"]),
        ("float32", ["uint8", "uint16", "uint32", "uint64", "float16"]),
        ("float64", ["int64", "float32"]),
        ("complex64", ["int64", "float32"]),
        ("complex128", ["int64", "float32"]),
    ],
)
def test_inputs_are_converted_to_the_common_dtype(xp: Any, common: str, names: list[str]) -> None:
    # One kernel converts several dtypes, because each kernel costs a compilation.
    places = range(len(names))
    parameters = [*(f"T x{place}" for place in places), "T y", *(f"T& sum{place}" for place in places)]
    body = " ".join(f"sum{place} = x{place} + y;" for place in places)
    code = f"template <typename T> void sums({', '.join(parameters)}) {{ {body} }}"
    inputs, y = [values((9,), name) for name in names], values((9,), common)
    results = tcuda.jiterator._create_multi_output_jit_fn(code, len(names))(*map(xp.asarray, inputs), xp.asarray(y))
    for x, result in zip(inputs, results if len(names) > 1 else [results], strict=True):
        assert result.dtype == common
        np.testing.assert_array_equal(result.get(), x.astype(common) + y)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda a: a, lambda a: a),
        (lambda a: a.T, lambda a: a.T),
        (lambda a: a.transpose(2, 0, 1), lambda a: a.transpose(2, 0, 1)[:, :, ::-1]),
        (lambda a: a[:, ::2], lambda a: a[:, :2]),
        (lambda a: a[::-1], lambda a: a[0]),
        (lambda a: a, lambda a: a[:, :, :1]),
        (lambda a: a[:1], lambda a: a[:, :1]),
        (lambda a: a, lambda a: a[0, 0, 0]),
        (lambda a: a[0, 0, 0], lambda a: a[1, 0, 0]),
        (lambda a: a[:0], lambda a: a[:1]),
    ],
)
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float32", "float64"), ("int8", "float16")])
def test_views_and_broadcast_inputs_give_the_elements_of_numpy(
    xp: Any, axpby: Callable[..., Any], first: Any, second: Any, dtypes: tuple[str, str]
) -> None:
    x, y = values((3, 4, 5), dtypes[0]), values((3, 4, 5), dtypes[1])
    for _ in range(2):  # the second call finds the kernels of the first
        result = axpby(first(xp.asarray(x)), second(xp.asarray(y)), alpha=2, beta=3)
        expected = 2 * first(x).astype(result.dtype) + 3 * second(y).astype(result.dtype)
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.get(), expected)


@pytest.mark.parametrize("size", [1, 3, 4, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("start", [0, 1])
def test_the_last_elements_of_every_size_are_computed(
    xp: Any, axpby: Callable[..., Any], size: int, start: int
) -> None:
    x = values((size + start,), "float32")
    result = axpby(xp.asarray(x)[start:], xp.asarray(x)[start:])
    np.testing.assert_array_equal(result.get(), 2 * x[start:])


def test_results_have_the_layout_of_the_inputs(xp: Any, axpby: Callable[..., Any]) -> None:
    x = xp.zeros((2, 3, 4), "float32").transpose(1, 2, 0)
    assert axpby(x, x).strides == x.strides


def test_scalars_go_by_keyword_and_have_defaults(xp: Any, axpby: Callable[..., Any]) -> None:
    x = xp.asarray(values((3,), "float64"))
    np.testing.assert_array_equal(axpby(x, x, beta=-4.5).get(), x.get() * -3.5)
    np.testing.assert_array_equal(axpby(x, x, alpha=np.float32(0.5), beta=np.int8(2)).get(), x.get() * 2.5)
    np.testing.assert_array_equal(axpby(x, x).get(), x.get() * 2)


def test_scalars_have_the_types_of_their_parameters(xp: Any) -> None:
    code = "template <typename T> T choose(T x, bool negate, int64_t n, double d) { return negate ? -x : x * n + d; }"
    choose = tcuda.jiterator._create_jit_fn(code, negate=False, n=2, d=0.25)
    x = xp.asarray([1.0, 2.0])
    np.testing.assert_array_equal(choose(x).get(), [2.25, 4.25])
    np.testing.assert_array_equal(choose(x, negate=True).get(), [-1.0, -2.0])


def test_the_code_cannot_include_headers_of_the_host(xp: Any) -> None:
    plus = tcuda.jiterator._create_jit_fn("#include <stdint.h>\ntemplate <typename T> T f(T x) { return x; }")
    with pytest.raises(RuntimeError, match="cannot open source file"):
        plus(xp.zeros(2))


@pytest.mark.parametrize("header", ["cstdint", "type_traits"])
def test_the_code_may_include_headers_of_libcuxx(xp: Any, header: str) -> None:
    code = f"#include <cuda/std/{header}>\ntemplate <typename T> T f(T x, int64_t n) {{ return x + T(n); }}"
    plus = tcuda.jiterator._create_jit_fn(code, n=2)
    for dtype in ("float32", "complex64"):
        np.testing.assert_array_equal(plus(xp.zeros(2, dtype)).get(), [2, 2])


def test_a_wrong_number_of_parameters_is_an_error_of_the_compiler(xp: Any) -> None:
    code = "template <typename T> T three(T x, T y, T z) { return x + y + z; }"
    with pytest.raises(RuntimeError, match="'three' does not compile"):
        tcuda.jiterator._create_jit_fn(code)(xp.zeros(2))


def test_complex_scalars_meet_complex_arrays(xp: Any) -> None:
    code = "template <typename T> T turn(T x, T by) { return x * by; }"
    turn = tcuda.jiterator._create_jit_fn(code, by=1j)
    for dtype in ("complex64", "complex128"):
        np.testing.assert_array_equal(turn(xp.asarray([1 + 2j], dtype)).get(), [-2 + 1j])


def test_helpers_before_the_kernel_are_compiled(xp: Any) -> None:
    code = (
        "template <typename T> T twice(T x) { return x + x; }\ntemplate <typename T> T f(T x) { return twice(x) + 1; }"
    )
    np.testing.assert_array_equal(tcuda.jiterator._create_jit_fn(code)(xp.asarray([1.0, 2.0])).get(), [3.0, 5.0])


@pytest.mark.parametrize("number", [1, 5, 8])
def test_up_to_eight_inputs_are_summed(xp: Any, number: int) -> None:
    names = [f"x{place}" for place in range(number)]
    code = f"template <typename T> T f({', '.join('T ' + name for name in names)}) {{ return {' + '.join(names)}; }}"
    inputs = [xp.full(3, place, "float32") for place in range(number)]
    np.testing.assert_array_equal(tcuda.jiterator._create_jit_fn(code)(*inputs).get(), sum(range(number)))


@pytest.mark.parametrize(("number", "dtype"), [(1, "float32"), (4, "float16"), (8, "float32")])
def test_several_outputs_are_written_to_references(xp: Any, number: int, dtype: str) -> None:
    parameters = ", ".join(f"T& out{place}" for place in range(number))
    body = " ".join(f"out{place} = x + {place};" for place in range(number))
    code = f"template <typename T> void f(T x, {parameters}) {{ {body} }}"
    results = tcuda.jiterator._create_multi_output_jit_fn(code, number)(xp.asarray([1, 2], dtype))
    if number == 1:
        results = (results,)
    assert isinstance(results, tuple)
    for place, result in enumerate(results):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result.get(), [1 + place, 2 + place])


def test_float16_computes_in_float32(xp: Any) -> None:
    code = "template <typename T> T f(T x) { return (x * 2048 + 1 - x * 2048) + (sizeof(T) == 4 ? 0 : 8); }"
    np.testing.assert_array_equal(tcuda.jiterator._create_jit_fn(code)(xp.asarray([3], "float16")).get(), [1])


def test_a_function_can_be_pickled(xp: Any) -> None:
    function = tcuda.jiterator._create_jit_fn(AXPBY, alpha=2, beta=3)
    restored = pickle.loads(pickle.dumps(function))
    x = xp.asarray([1.0, 2.0])
    np.testing.assert_array_equal(restored(x, x).get(), [5.0, 10.0])
    assert copy.copy(function).kernel_name == "axpby"


def test_a_function_has_the_attributes_of_torch() -> None:
    function = tcuda.jiterator._create_multi_output_jit_fn(AXPBY, 2, alpha=1, beta=2)
    attributes = function.code_string, function.kernel_name, function.num_outputs, function.return_by_ref
    assert attributes == (AXPBY, "axpby", 2, True)
    assert function.kwargs_dict == {"alpha": 1, "beta": 2}


@pytest.mark.parametrize("name", ["_create_jit_fn", "_create_multi_output_jit_fn"])
def test_the_examples_of_the_documentation_print_what_they_say(xp: Any, name: str) -> None:
    example = doctest.DocTestParser().get_doctest(
        inspect.cleandoc(getattr(tcuda.jiterator, name).__doc__), {"tcuda": tcuda, "xp": xp}, name, None, None
    )
    assert doctest.DocTestRunner().run(example) == (0, 3)


def test_nine_inputs_are_an_assertion_error(xp: Any, axpby: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match="only supports up to 8 tensor inputs"):
        axpby(*[xp.zeros(1)] * 9)


def test_an_unknown_keyword_is_a_key_error(xp: Any, axpby: Callable[..., Any]) -> None:
    with pytest.raises(KeyError, match="gamma is not declared in function definition; declared are alpha, beta"):
        axpby(xp.zeros(1), xp.zeros(1), gamma=1)


def test_a_keyword_that_is_no_number_is_a_type_error(xp: Any, axpby: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="alpha must be a number"):
        axpby(xp.zeros(1), xp.zeros(1), alpha="1")


@pytest.mark.parametrize("wrong", [np.zeros(3), 2.0, None, [1.0]])
def test_an_input_that_is_no_array_of_a_device_is_an_error(xp: Any, axpby: Callable[..., Any], wrong: Any) -> None:
    with pytest.raises(RuntimeError, match="input 1 is a "):
        axpby(xp.zeros(3), wrong)


def test_a_call_without_inputs_is_an_error(axpby: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="needs at least one input"):
        axpby()


def test_shapes_that_do_not_fit_are_an_error(xp: Any, axpby: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match=r"cannot be broadcast to one shape: \(3,\), \(4,\)"):
        axpby(xp.zeros(3), xp.zeros(4))


def test_code_that_does_not_compile_names_the_line_of_the_user(xp: Any) -> None:
    code = "template <typename T>\nT broken(T x) {\n    T y = x;\n    return y + missing;\n}\n"
    broken = tcuda.jiterator._create_jit_fn(code)
    with pytest.raises(RuntimeError, match=r"'broken' does not compile:\n  line 4: .*\n    return y \+ missing;"):
        broken(xp.zeros(3))


def test_code_that_does_not_compile_is_not_needed_for_an_empty_array(xp: Any) -> None:
    broken = tcuda.jiterator._create_jit_fn("template <typename T> T broken(T x) { return missing; }")
    assert broken(xp.zeros((2, 0), "float32")).shape == (2, 0)


@pytest.mark.parametrize("name", ["bool", "int64", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (), (0, 3)])
def test_a_repeated_call_makes_the_same_array(
    xp: Any, axpby: Callable[..., Any], name: str, shape: tuple[int, ...]
) -> None:
    x = xp.ones(shape, name)
    first, second = axpby(x, x), axpby(x, x)
    assert type(second) is type(first) is xp.ndarray
    for attribute in ("shape", "strides", "size", "dtype", "base"):
        assert getattr(second, attribute) == getattr(first, attribute), attribute
    for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA"):
        assert second.flags[flag] == first.flags[flag], flag
    assert (second + 1).tolist() == (first + 1).tolist()


def test_a_failed_call_keeps_no_memory(xp: Any, changes: Changes) -> None:
    broken = tcuda.jiterator._create_jit_fn("template <typename T> T broken(T x) { return missing; }")
    x = xp.zeros(3)
    with changes() as changed, contextlib.suppress(RuntimeError):
        broken(x)
    assert "allocated_bytes.all.current" not in changed


@pytest.mark.parametrize("strided", [False, True])
def test_a_capture_takes_the_call(xp: Any, axpby: Callable[..., Any], strided: bool) -> None:
    x = xp.arange(12, dtype="float32").reshape(3, 4)
    y = x[0] if strided else x
    axpby(x, y)  # compiles
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        result = axpby(x, y)
    x *= 2
    graph.replay()
    tcuda.synchronize()
    np.testing.assert_array_equal(result.get(), x.get() + y.get())


@pytest.mark.alone  # The stream may become idle before the question.
def test_a_call_runs_on_the_current_stream(xp: Any, axpby: Callable[..., Any]) -> None:
    x = xp.zeros(4, "float32")
    axpby(x + 1, x)  # compiles the kernels of both operations
    tcuda.synchronize()
    stream = tcuda.Stream()
    with tcuda.stream(stream):
        tcuda._sleep(50_000_000)
        result = axpby(x + 1, x)
        event = stream.record_event()
    assert not event.query()
    stream.synchronize()
    np.testing.assert_array_equal(result.get(), [1, 1, 1, 1])


def test_a_new_thread_computes_too(output_of: OutputOf) -> None:
    code = f"""
import threading, tcuda
xp = tcuda.xp
axpby = tcuda.jiterator._create_jit_fn({AXPBY!r}, alpha=1, beta=1)
x = xp.arange(4.0)
axpby(x, x)
results = []
thread = threading.Thread(target=lambda: results.append(axpby(x, x).get().tolist()))
thread.start()
thread.join()
print(results)
"""
    assert output_of(code) == "[[0.0, 2.0, 4.0, 6.0]]"


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("strided", [False, True])
def test_a_result_is_on_the_device_of_the_inputs(xp: Any, axpby: Callable[..., Any], strided: bool) -> None:
    for index in (1, 0, 1):
        with tcuda.device(index):
            x = xp.arange(6, dtype="float32").reshape(2, 3)
        y = x[0] if strided else x
        with tcuda.device(1 - index):
            result = axpby(x, y)
            assert tcuda.current_device() == 1 - index
        assert result.device.id == index
        with tcuda.device(index):
            np.testing.assert_array_equal(result.get(), x.get() + y.get())


@pytest.mark.usefixtures("two_devices")
def test_inputs_of_two_devices_are_an_error(xp: Any, axpby: Callable[..., Any]) -> None:
    with tcuda.device(0):
        x = xp.zeros(3)
        axpby(x, x)
    with tcuda.device(1):
        y = xp.zeros(3)
    with pytest.raises(RuntimeError, match="input 0 is on cuda:0 and input 1 is on cuda:1"):
        axpby(x, y)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_functions_of_the_standard_namespace(xp: Any, dtype: str) -> None:
    code = "template <typename T> T f(T x) { return std::exp(x) + std::pow(x, T(2)) - std::sqrt(x) * std::abs(x); }"
    x = np.array([0.25, 1, 2.25], dtype)
    expected = np.exp(x) + x * x - np.sqrt(x) * np.abs(x)
    result = tcuda.jiterator._create_jit_fn(code)(xp.asarray(x)).get()
    np.testing.assert_allclose(result, expected, rtol=1e-2 if dtype == "float16" else 1e-5)
