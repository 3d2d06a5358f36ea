"""``_compile_kernel``: the kernels that it returns, and what it refuses."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.core import for_tests
from support.threads import in_thread

if TYPE_CHECKING:
    from pathlib import Path

    from tcuda._core import KernelFunction
    from tcuda._runtime.protocol import Runtime

pytestmark = pytest.mark.usefixtures("runtime")

SCALE = """
__global__ void scale(float *x, float by, long long n) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}
extern "C" __global__ void add(int *x, int n) { x[threadIdx.x] += n; }
template <typename T> __global__ void fill(T *x, T value) { x[threadIdx.x] = value; }
namespace inner { __global__ void one(int *x) { *x = 1; } }
"""


@pytest.fixture
def scale() -> KernelFunction:
    return tcuda._compile_kernel(SCALE, "scale")


def numbers(xp: Any, array: Any) -> list[Any]:
    result: list[Any] = xp.asnumpy(array).tolist()
    return result


def forbid_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rest of the test fail if anything is compiled."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a source is compiled again")

    for module, function in (("tcuda.emulation.rtc", "build"), ("tcuda._cupy.nvrtc", "_compile")):
        if module in sys.modules:
            monkeypatch.setattr(sys.modules[module], function, fail)


class TestNames:
    def test_a_kernel_needs_no_extern_c(self, xp: Any, scale: KernelFunction) -> None:
        x = xp.arange(10, dtype=xp.float32)
        scale((3,), (4,), (x, 0.5, 10))
        assert numbers(xp, x) == [i / 2 for i in range(10)]

    def test_a_kernel_may_be_extern_c(self, xp: Any) -> None:
        x = xp.arange(4, dtype=xp.int32)
        tcuda._compile_kernel(SCALE, "add")(1, 4, [x, -3])
        assert numbers(xp, x) == [-3, -2, -1, 0]

    @pytest.mark.parametrize(("name", "dtype"), [("fill<float>", "float32"), ("fill<unsigned char>", "uint8")])
    def test_a_template_is_named_with_its_arguments(self, xp: Any, name: str, dtype: str) -> None:
        x = xp.zeros(4, dtype=dtype)
        tcuda._compile_kernel(SCALE, name)((1, 1, 1), (4, 1, 1), (x, 7))
        assert numbers(xp, x) == [7] * 4

    def test_a_kernel_in_a_namespace_is_named_with_the_namespace(self, xp: Any) -> None:
        x = xp.zeros(1, dtype=xp.int32)
        tcuda._compile_kernel(SCALE, "inner::one")(args=(x,))
        assert numbers(xp, x) == [1]

    @pytest.mark.parametrize("name", ["absent", "one", "fill", "fill<Absent>", "scale("])
    def test_a_name_that_is_no_kernel_is_an_error_of_the_compilation(self, name: str) -> None:
        with pytest.raises(RuntimeError, match="Kernel compilation failed"):
            tcuda._compile_kernel(SCALE, name)

    def test_an_error_in_the_source_shows_the_text_of_the_compiler(self) -> None:
        with pytest.raises(RuntimeError, match=r"Kernel compilation failed:(.|\n)*undeclared_name"):
            tcuda._compile_kernel("__global__ void f(int *x) { *x = undeclared_name; }", "f")

    def test_a_kernel_that_the_preprocessor_removes_is_no_hindrance(self, xp: Any) -> None:
        source = "#if 0\n__global__ void gone() {}\n#endif\n__global__ void f(int *x) { *x = 2; }"
        x = xp.zeros(1, dtype=xp.int32)
        tcuda._compile_kernel(source, "f")(args=(x,))
        assert numbers(xp, x) == [2]

    @pytest.mark.wings
    def test_a_second_kernel_of_a_source_is_not_compiled(self, xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        source = "__global__ void first(int *x) { *x = 1; } __global__ void second(int *x) { *x = 2; }"
        tcuda._compile_kernel(source, "first")
        forbid_compilation(monkeypatch)
        x = xp.zeros(1, dtype=xp.int32)
        tcuda._compile_kernel(source, "second")(args=(x,))
        assert numbers(xp, x) == [2]


class TestArgumentsOfTheCompilation:
    def test_options_reach_the_compiler(self, xp: Any) -> None:
        x = xp.zeros(1, dtype=xp.int32)
        source = "__global__ void f(int *x) { *x = NUMBER; }"
        for number in (3, 4):
            tcuda._compile_kernel(source, "f", nvcc_options=[f"-DNUMBER={number}"])(args=(x,))
            assert numbers(xp, x) == [number]

    def test_headers_are_found_in_the_folders(self, xp: Any, tmp_path: Path) -> None:
        (tmp_path / "five.h").write_text("#define FIVE 5\n")
        x = xp.zeros(1, dtype=xp.int32)
        source = '#include "five.h"\n__global__ void f(int *x) { *x = FIVE; }'
        tcuda._compile_kernel(source, "f", cuda_include_dirs=[tmp_path])(args=(x,))
        assert numbers(xp, x) == [5]

    def test_the_capability_of_the_device_can_be_named(self, xp: Any) -> None:
        major, minor = tcuda.get_device_capability()
        x = xp.zeros(1, dtype=xp.int32)
        tcuda._compile_kernel(SCALE, "add", compute_capability=f"{major}{minor}")(args=(x, 2))
        assert numbers(xp, x) == [2]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((b"", "f"), TypeError, "kernel_source must be a str; got a bytes"),
            ((SCALE, None), TypeError, "kernel_name must be a str; got a NoneType"),
            ((SCALE, ""), ValueError, "kernel_name must not be empty"),
            (("", "f"), ValueError, "kernel_source must not be empty"),
            ((SCALE, "scale", 90), TypeError, "compute_capability must be a str; got an int"),
            ((SCALE, "scale", "9.0"), ValueError, "compute_capability must be digits"),
            ((SCALE, "scale", None, "/usr/include"), TypeError, "cuda_include_dirs must be a list of str; got a str"),
            ((SCALE, "scale", None, [3]), TypeError, "cuda_include_dirs must be a list of str; got an int"),
            ((SCALE, "scale", None, None, "-G"), TypeError, "nvcc_options must be a list of str; got a str"),
            ((SCALE, "scale", None, None, [None]), TypeError, "nvcc_options must be a list of str; got a NoneType"),
        ],
    )
    def test_a_wrong_argument_is_refused(
        self, arguments: tuple[Any, ...], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            tcuda._compile_kernel(*arguments)


ALL_TYPES = """
struct Pair { float x; int n; };
enum Choice : short { first, second };
__global__ void f(double *out, bool flag, signed char i8, unsigned short u16, int i32, unsigned long long u64,
                  float f32, double f64, Pair pair, Choice choice, const int *null, float2 complex) {
    const double values[] = {double(flag), double(i8), double(u16), double(i32), double(u64), f32, f64, pair.x,
                             double(pair.n), double(choice), double(null == nullptr), complex.x, complex.y};
    for (int i = 0; i < 13; ++i)
        out[i] = values[i];
}
"""


class Pair(ctypes.Structure):
    _fields_ = (("x", ctypes.c_float), ("n", ctypes.c_int))


class TestArguments:
    @pytest.mark.parametrize("pair", [Pair(0.5, 7), np.array((0.5, 7), "f4,i4")[()]])
    def test_the_compiler_tells_the_types_of_the_parameters(self, xp: Any, pair: Any) -> None:
        kernel = tcuda._compile_kernel(ALL_TYPES, "f")
        kinds = [(kind, size) for kind, size, _ in for_tests.list_of_parameters(kernel.parameters)]
        assert kinds == [
            *(("p", 8), ("b", 1), ("i", 1), ("u", 2), ("i", 4), ("u", 8)),
            *(("f", 4), ("f", 8), ("s", 8), ("i", 2), ("p", 8), ("s", 8)),
        ]
        out = xp.zeros(13)
        kernel(args=(out, True, -5, 65535, -(2**31), 2**53, 0.5, 0.1, pair, 1, None, 1 - 2j))
        assert numbers(xp, out) == [1, -5, 65535, -(2**31), 2**53, 0.5, 0.1, 0.5, 7, 1, 1, 1, -2]

    def test_small_floats_take_floats(self, xp: Any) -> None:
        source = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void f(float *out, __half half, __nv_bfloat16 brain) {
    out[0] = __half2float(half);
    out[1] = __bfloat162float(brain);
}
"""
        kernel = tcuda._compile_kernel(source, "f")
        assert [kind for kind, _, _ in for_tests.list_of_parameters(kernel.parameters)] == ["p", "f", "g"]
        out = xp.zeros(2, dtype=xp.float32)
        kernel(args=(out, 0.1, 0.1))
        assert numbers(xp, out) == [float(np.float16(0.1)), 0.10009765625]
        kernel(args=(out, np.float16(2), 3))
        assert numbers(xp, out) == [2, 3]

    def test_a_wrong_argument_names_the_kernel_and_launches_nothing(self, xp: Any, scale: KernelFunction) -> None:
        x = xp.ones(4, dtype=xp.float32)
        with pytest.raises(TypeError, match="argument 3 of kernel scale: the parameter is int64"):
            scale(1, 4, (x, 2.0, 4.0))
        with pytest.raises(TypeError, match="kernel scale takes 3 arguments, but args has 2"):
            scale(1, 4, (x, 2.0))
        with pytest.raises(TypeError, match="argument 1 of kernel scale: the parameter is a pointer"):
            scale(1, 4, (np.ones(4, np.float32), 2.0, 4))
        assert numbers(xp, x) == [1] * 4

    def test_a_view_passes_the_address_of_its_first_element(self, xp: Any, scale: KernelFunction) -> None:
        x = xp.ones(8, dtype=xp.float32)
        scale(1, 4, (x[2:], 3.0, 4))
        scale(1, 1, (x.data.ptr, 5.0, 1))
        assert numbers(xp, x) == [5, 1, 3, 3, 3, 3, 1, 1]


class TestLaunches:
    def test_a_kernel_without_arguments_runs_one_thread(self) -> None:
        assert tcuda._compile_kernel("__global__ void nothing() {}", "nothing")() is None

    def test_grid_and_block_have_three_axes(self, xp: Any) -> None:
        source = """
__global__ void f(int *x) {
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    x[thread + block * blockDim.x * blockDim.y * blockDim.z] = 100 * block + thread;
}
"""
        x = xp.zeros(24 * 6, dtype=xp.int32)
        tcuda._compile_kernel(source, "f")((2, 3, 4), (1, 2, 3), (x,))
        assert numbers(xp, x) == [100 * block + thread for block in range(24) for thread in range(6)]

    @pytest.mark.parametrize("where", ["current", "argument"])
    def test_a_launch_goes_to_the_stream(self, xp: Any, scale: KernelFunction, where: str) -> None:
        x = xp.ones(4, dtype=xp.float32)
        tcuda.synchronize()
        stream = tcuda.Stream()
        with tcuda.stream(stream):
            tcuda._sleep(1)
            stream.synchronize()
            tcuda._sleep(50_000_000)
        if where == "current":
            with tcuda.stream(stream):
                scale(1, 4, (x, 2.0, 4))
        else:
            scale(1, 4, (x, 2.0, 4), stream=stream)
        assert not stream.query()
        stream.synchronize()
        assert numbers(xp, x) == [2] * 4

    def test_a_graph_captures_and_repeats_launches(self, xp: Any, scale: KernelFunction) -> None:
        x = xp.ones(4, dtype=xp.float32)
        graph = tcuda.CUDAGraph()
        with tcuda.graph(graph):
            scale(1, 4, (x, 2.0, 4))
        assert numbers(xp, x) == [1] * 4
        graph.replay()
        graph.replay()
        tcuda.synchronize()
        assert numbers(xp, x) == [4] * 4

    @pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (1, 1025), (1, (1, 1, 65)), ((1, 65536), 1)])
    def test_a_launch_beyond_the_limits_is_refused(self, xp: Any, scale: KernelFunction, sizes: Any) -> None:
        with pytest.raises(tcuda.AcceleratorError, match=r"cuLaunchKernel\(scale") as error:
            scale(*sizes, (None, 1.0, 0))
        assert error.value.error_code in (1, 9)
        x = xp.ones(1, dtype=xp.float32)
        scale(1, 1, (x, 2.0, 1))
        assert numbers(xp, x) == [2]

    def test_a_thread_without_a_context_can_launch(self, xp: Any, scale: KernelFunction) -> None:
        x = xp.ones(4, dtype=xp.float32)
        tcuda.synchronize()

        def run() -> None:
            scale(1, 4, (x, 2.0, 4))
            tcuda.synchronize()

        in_thread(run)
        assert numbers(xp, x) == [2] * 4


SHARED = """
extern __shared__ int words[];
__global__ void reverse(int *x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        words[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = words[n - 1 - i];
}
"""


class TestSharedMemory:
    def limit(self, runtime: Runtime) -> int:
        size: int = runtime.getDeviceProperties(0)["sharedMemPerBlockOptin"]
        return size

    @pytest.mark.parametrize("asked", [False, True])
    @pytest.mark.parametrize("words", [64, 13_000, 20_000])
    def test_a_launch_gets_the_shared_memory_that_it_asks_for(self, xp: Any, words: int, asked: bool) -> None:
        kernel = tcuda._compile_kernel(SHARED, "reverse")
        if asked:
            kernel.set_shared_memory_config(4 * words)
        x = xp.arange(words, dtype=xp.int32)
        kernel(1, 64, (x, words), shared_mem=4 * words)
        assert numbers(xp, x) == list(range(words))[::-1]

    def test_more_than_the_device_has_is_an_error_with_the_limit(self, runtime: Runtime) -> None:
        kernel = tcuda._compile_kernel(SHARED, "reverse")
        limit = self.limit(runtime)
        with pytest.raises(RuntimeError, match=f"{limit + 1} bytes.*exceeds the limit of cuda:0.*{limit} bytes"):
            kernel.set_shared_memory_config(limit + 1)
        with pytest.raises(RuntimeError, match=f"exceeds the limit of cuda:0.*{limit} bytes"):
            kernel(1, 1, (None, 0), limit + 1)

    @pytest.mark.parametrize(("size", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
    def test_a_size_that_is_none_is_refused(self, size: Any, error: type[Exception]) -> None:
        with pytest.raises(error, match="shared_mem_bytes must be"):
            tcuda._compile_kernel(SHARED, "reverse").set_shared_memory_config(size)


@pytest.mark.skipif(tcuda.device_count() < 2, reason="needs two devices")
def test_a_kernel_is_loaded_on_each_device(xp: Any, scale: KernelFunction) -> None:
    for device in (1, 0, 1):
        with tcuda.device(device):
            x = xp.ones(4, dtype=xp.float32)
            scale(1, 4, (x, 2.0, 4))
            assert numbers(xp, x) == [2] * 4
