"""Kernels in CUDA C++: arguments, launches, limits, attributes, captures and failures, on both runtimes."""

from __future__ import annotations

import gc
import io
import itertools
import pickle
import re
import shutil
import uuid
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.cpp_compilers import array_type, needs_gcc
from support.devices import synchronized
from support.kernels import SAXPY, launch_status

if TYPE_CHECKING:
    from support.fixture_types import OutputOf, RunPython

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


def kernel(xp: Any, body: str, parameters: str = "int* x", **settings: Any) -> Any:
    """Return a kernel with the name ``f``."""
    return xp.RawKernel(f'extern "C" __global__ void f({parameters}) {{ {body} }}', "f", **settings)


def test_a_kernel_computes(xp: Any) -> None:
    saxpy = xp.RawKernel(SAXPY, "saxpy")
    x, y = xp.arange(1000, dtype=xp.float32), xp.ones(1000, dtype=xp.float32)
    saxpy((8,), (128,), (1000, xp.float32(2), x, y))
    assert y.get().tolist() == (2 * np.arange(1000, dtype=np.float32) + 1).tolist()


def test_blocks_and_threads_have_three_axes(xp: Any) -> None:
    number = kernel(
        xp,
        "int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;"
        "int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;"
        "x[b * blockDim.x * blockDim.y * blockDim.z + t] += b * 1000 + t;",
    )
    x = xp.zeros(24 * 24, dtype=xp.int32)
    number((2, 3, 4), (4, 3, 2), (x,))
    assert x.get().tolist() == [b * 1000 + t for b in range(24) for t in range(24)]


def test_missing_axes_and_numbers_below_one_count_as_one(xp: Any) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    kernel(xp, "atomicAdd(x, 1);")((1,), (0, -3), (x,))
    assert x.item() == 1


@pytest.mark.parametrize("what", ["a list", None, 3])
def test_grid_and_block_are_tuples(what: object, xp: Any) -> None:
    with pytest.raises(TypeError):
        kernel(xp, "")(what, (1,), (None,))
    with pytest.raises(TypeError):
        kernel(xp, "")((1,), what, (None,))


def test_scalars_of_numpy_and_python_arrive_in_parameters_of_their_size(xp: Any) -> None:
    store = kernel(
        xp,
        "x[0] = a; x[1] = b; x[2] = c; x[3] = d; x[4] = e; x[5] = f1; x[6] = g; x[7] = h; x[8] = i;",
        "double* x, signed char a, unsigned short b, int c, long long d, bool e, float f1, double g, int h,"
        "unsigned long long i",
    )
    x = xp.zeros(9)
    numbers = xp.int8(-3), xp.uint16(65535), xp.int32(-7), -(2**40), True, xp.float32(0.5), 0.25, -9, 2**40
    store((1,), (1,), (x, *numbers))
    assert x.get().tolist() == [-3, 65535, -7, -(2**40), 1, 0.5, 0.25, -9, 2**40]


@pytest.mark.emulated
def test_none_is_a_null_pointer(xp: Any) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    kernel(xp, "x[0] = p == nullptr ? 1 : 2;", "int* x, const float* p")((1,), (1,), (x, None))
    assert x.item() == 1


def test_complex_numbers_and_structures_arrive(xp: Any) -> None:
    store = kernel(
        xp,
        "x[0] = c.x; x[1] = c.y; x[2] = s.a; x[3] = s.b; x[4] = z.x; x[5] = z.y;",
        "double* x, float2 c, S s, double2 z",
    )
    code = "struct S { int a; double b; };\n" + store.code
    record = np.zeros((), dtype=np.dtype({"names": ["a", "b"], "formats": [np.int32, np.float64], "offsets": [0, 8]}))
    record["a"], record["b"] = 5, 6.5
    x = xp.zeros(6)
    xp.RawKernel(code, "f")((1,), (1,), (x, xp.complex64(1 + 2j), record, 3 + 4j))
    assert x.get().tolist() == [1, 2, 5, 6.5, 3, 4]


def test_a_view_is_passed_by_its_first_element(xp: Any) -> None:
    x = xp.zeros(8, dtype=xp.int32)
    kernel(xp, "x[threadIdx.x] = 1;")((1,), (2,), (x[3:],))
    assert x.get().tolist() == [0, 0, 0, 1, 1, 0, 0, 0]


def test_an_address_is_passed_as_a_number_or_a_pointer(xp: Any) -> None:
    x = xp.zeros(2, dtype=xp.int32)
    add = kernel(xp, "x[1] += 1;")
    add((1,), (1,), (x.data.ptr,))
    add((1,), (1,), (x.data,))
    assert x.get().tolist() == [0, 2]


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("parameter", "argument", "message"),
    [
        ("float", 2.0, "is a Python float, which is passed in 8 bytes, and the parameter is a floating-point number of "
         "4 bytes. Pass numpy.float32(...)."),
        ("float", np.float64(2), "is a float64, and .* of 4 bytes"),
        ("double", np.float32(2), "is a float32, and .* of 8 bytes. Pass numpy.float64"),
        ("float", 2, "is a Python int, .* a floating-point number of 4 bytes"),
        ("double", np.int64(2), "is a int64, .* a floating-point number of 8 bytes"),
        ("int", 2.0, "is a Python float, .* a signed integer of 4 bytes. Pass numpy.int32"),
        ("int", np.int16(2), "is a int16, .* a signed integer of 4 bytes"),
        ("unsigned long long", np.uint32(2), "is a uint32, .* an unsigned integer of 8 bytes. Pass numpy.uint64"),
        ("int", True, "is a bool, .* a signed integer of 4 bytes"),
        ("int", None, "is a NoneType, .* a signed integer of 4 bytes"),
        ("bool", 1.0, "is a Python float, .* a bool. Pass True or False."),
        ("int*", 1.5, "is a Python float, .* a pointer. Pass an array of the device"),
        ("int*", np.zeros(3), "is a NumPy array of 24 bytes, .* cannot read memory of the host"),
        ("int*", np.int32(3), "is a int32, .* a pointer"),
        ("double2", np.complex64(1), "is a complex64, .* a structure of 16 bytes"),
        ("float2", 1j, "is a Python complex, which is passed in 16 bytes, .* a structure of 8 bytes"),
        ("int", "3", "Unsupported type <class 'str'> of argument 0 of the kernel f"),
        ("int*", [1], "Unsupported type <class 'list'> of argument 0"),
    ],
)  # fmt: skip
def test_arguments_that_cuda_would_misread_are_refused(parameter: str, argument: object, message: str, xp: Any) -> None:
    with pytest.raises(TypeError, match=message):
        kernel(xp, "", f"{parameter} p")((1,), (1,), (argument,))


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("parameter", "argument"),
    [("int", 2**32), ("int", -(2**31) - 1), ("unsigned char", 256), ("short", np.int64(2**20)), ("bool", 2),
     ("long long", 2**64)],
)  # fmt: skip
def test_integers_that_do_not_fit_are_refused(parameter: str, argument: object, xp: Any) -> None:
    with pytest.raises(OverflowError, match="does not fit in the parameter"):
        kernel(xp, "", f"{parameter} p")((1,), (1,), (argument,))


@pytest.mark.emulated
@pytest.mark.parametrize("arguments", [(), (None, None)])
def test_the_number_of_arguments_is_checked(arguments: tuple[None, ...], xp: Any) -> None:
    with pytest.raises(TypeError, match=rf"f has 1 parameter, and the launch passes {len(arguments)} argument"):
        kernel(xp, "")((1,), (1,), arguments)


@pytest.mark.wings
def test_an_array_of_a_device_is_no_number(xp: Any) -> None:
    if tcuda.emulation.xp is not xp:
        pytest.skip("CuPy passes the address")
    with pytest.raises(TypeError, match="is an array of a device, and the parameter is a signed integer of 4 bytes"):
        kernel(xp, "", "int n")((1,), (1,), (xp.zeros(1),))


def test_dynamic_shared_memory(xp: Any) -> None:
    reverse = kernel(
        xp,
        "extern __shared__ int s[]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads();"
        "x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];",
    )
    x = xp.arange(256, dtype=xp.int32)
    reverse((1,), (256,), (x,), shared_mem=1024)
    assert x.get().tolist() == list(range(255, -1, -1))


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((1,), (1025,), 0),
        ((1,), (1, 1025), 0),
        ((1,), (1, 1, 65), 0),
        ((1,), (32, 33), 0),
        ((1, 65536), (1,), 0),
        ((1, 1, 65536), (1,), 0),
        ((1,), (1,), 49153),
    ],
)
def test_launches_beyond_the_limits_are_refused(
    grid: tuple[int, ...], block: tuple[int, ...], shared: int, xp: Any
) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    add = kernel(xp, "x[0] = 1;")
    assert launch_status(lambda: add(grid, block, (x,), shared_mem=shared)) == 1
    assert x.item() == 0


def test_a_refused_launch_raises_the_error_of_cupys_driver(xp: Any) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    add = kernel(xp, "x[0] = 1;")
    for refused in (lambda: add((1,), (1025,), (x,)), lambda: add((1,), (1,), (x,), shared_mem=1 << 20)):
        with pytest.raises(xp.cuda.driver.CUDADriverError, match="CUDA_ERROR_INVALID_VALUE") as error:
            refused()
        assert error.value.status == 1
    if tcuda.device_count() > 1:
        stream = tcuda.Stream(device=1)
        with pytest.raises(xp.cuda.driver.CUDADriverError) as error:
            add((1,), (1,), (x,), stream=stream)
        assert error.value.status == 400


@pytest.mark.parametrize(
    "qualifiers",
    [
        'extern "C" __global__ void __launch_bounds__(64) f(int* x)',
        'extern "C" __global__ __launch_bounds__(2 * (THREADS), 2) void f(int* x)',
        'extern "C" __launch_bounds__(HALF + HALF) __global__ void f(int* x)',
    ],
)
def test_launch_bounds_limit_the_threads_of_a_block(qualifiers: str, xp: Any) -> None:
    code = f"#define HALF THREADS\n#define THREADS 32u\n{qualifiers} {{ if (threadIdx.x == 63) x[0] += 1; }}"
    bounded = xp.RawKernel(code, "f")
    x = xp.zeros(1, dtype=xp.int32)
    bounded((1,), (64,), (x,))
    assert launch_status(lambda: bounded((1,), (65,), (x,))) == 1
    assert bounded.max_threads_per_block == bounded.attributes["max_threads_per_block"] == 64
    assert x.item() == 1


def test_launch_bounds_of_a_template_and_of_a_macro_for_kernels(xp: Any) -> None:
    code = """
    #define KERNEL(name, n) extern "C" __global__ void __launch_bounds__(n) name() {}
    KERNEL(plain, 96)
    namespace inner { template <class T> __global__ void __launch_bounds__(32) f(T* x) { x[0] = threadIdx.x; } }
    """
    module = xp.RawModule(code=code, name_expressions=["inner::f<int>"])
    assert module.get_function("inner::f<int>").max_threads_per_block == 32
    assert module.get_function("plain").max_threads_per_block == 96


def test_static_shared_memory_counts(xp: Any) -> None:
    body = "__shared__ float s[64]; s[threadIdx.x] = x[0]; __syncthreads(); if (!threadIdx.x) x[1] = s[1];"
    store = kernel(xp, body)
    x = xp.zeros(2, dtype=xp.int32)
    assert store.shared_size_bytes == store.attributes["shared_size_bytes"] == 256
    assert store.max_dynamic_shared_size_bytes == 49152 - 256
    store((1,), (64,), (x,), shared_mem=49152 - 256)
    assert launch_status(lambda: store((1,), (64,), (x,), shared_mem=49152 - 255)) == 1
    most = tcuda.get_device_properties().shared_memory_per_block_optin - 256
    store.max_dynamic_shared_size_bytes = most
    assert launch_status(lambda: setattr(store, "max_dynamic_shared_size_bytes", most + 1)) == 1


def test_a_char_has_a_sign(xp: Any) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    kernel(xp, "char c = x[0] + 255; x[0] = c;")((1,), (1,), (x,))
    assert x.item() == -1


def test_launches_at_the_limits_are_taken(xp: Any) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    count = kernel(xp, "if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) atomicAdd(x, 1);")
    count((1, 65535), (1,), (x,))
    count((1,), (1024,), (x,), shared_mem=49152)
    count((1,), (1, 16, 64), (x,))
    assert x.item() == 65537


def test_a_kernel_can_ask_for_more_shared_memory(xp: Any) -> None:
    store = kernel(xp, "extern __shared__ char s[]; s[x[0] - 1] = 7; x[0] = s[x[0] - 1];")
    most = tcuda.get_device_properties().shared_memory_per_block_optin
    x = xp.asarray([most], dtype=xp.int32)
    assert launch_status(lambda: store((1,), (1,), (x,), shared_mem=most)) == 1
    assert store.max_dynamic_shared_size_bytes == 49152
    store.max_dynamic_shared_size_bytes = most
    assert store.max_dynamic_shared_size_bytes == store.attributes["max_dynamic_shared_size_bytes"] == most
    store((1,), (1,), (x,), shared_mem=most)
    assert x.item() == 7
    assert launch_status(lambda: setattr(store, "max_dynamic_shared_size_bytes", most + 1)) == 1
    assert store.max_dynamic_shared_size_bytes == most


def test_attributes(xp: Any) -> None:
    attributes = kernel(xp, "x[0] = 1;").attributes
    assert set(attributes) == {
        "max_threads_per_block",
        "shared_size_bytes",
        "const_size_bytes",
        "local_size_bytes",
        "num_regs",
        "ptx_version",
        "binary_version",
        "cache_mode_ca",
        "max_dynamic_shared_size_bytes",
        "preferred_shared_memory_carveout",
    }
    major, minor = tcuda.get_device_capability()
    assert attributes["binary_version"] == 10 * major + minor
    assert attributes["max_threads_per_block"] == 1024
    assert attributes["shared_size_bytes"] == attributes["local_size_bytes"] == attributes["cache_mode_ca"] == 0
    assert attributes["max_dynamic_shared_size_bytes"] == 49152
    assert attributes["preferred_shared_memory_carveout"] == -1


def test_the_carveout_can_be_set(xp: Any) -> None:
    store = kernel(xp, "")
    store.preferred_shared_memory_carveout = 50
    assert store.preferred_shared_memory_carveout == 50
    assert launch_status(lambda: setattr(store, "preferred_shared_memory_carveout", 101)) == 1
    assert store.preferred_shared_memory_carveout == 50


def test_the_surface_of_a_kernel(xp: Any) -> None:
    store = kernel(xp, "", options=("-DN=3",), enable_cooperative_groups=True)
    assert store.name == store.__name__ == "f"
    assert store.options == ("-DN=3",)
    assert store.backend == "nvrtc"
    assert store.enable_cooperative_groups is True
    assert store.file_path is None
    assert store.code.startswith('extern "C"')


def test_options_define_macros(xp: Any) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    kernel(xp, "x[0] = N;", options=("-DN=3", "--std=c++17"))((1,), (1,), (x,))
    assert x.item() == 3


@pytest.mark.parametrize(("name", "value"), [("options", ["-w"]), ("options", "-w"), ("code", 3), ("name", b"f")])
def test_arguments_of_other_types_are_refused(name: str, value: object, xp: Any) -> None:
    arguments: dict[str, object] = {"code": "", "name": "f", "options": ()}
    with pytest.raises(TypeError):
        xp.RawKernel(**{**arguments, name: value})


def test_a_kernel_is_compiled_at_the_first_use(xp: Any) -> None:
    broken = kernel(xp, "x[0] = missing;")
    with pytest.raises(Exception, match="missing") as caught:
        broken((1,), (1,), (None,))
    assert type(caught.value).__name__ == "CompileException"
    with pytest.raises(Exception, match="missing"):
        broken.compile()
    with pytest.raises(Exception, match="missing"):
        _ = broken.num_regs


def test_a_name_without_c_linkage_is_not_found(xp: Any) -> None:
    mangled = xp.RawKernel("__global__ void f(int* x) {}", "f")
    assert launch_status(lambda: mangled((1,), (1,), (None,))) == 500
    absent = xp.RawKernel('extern "C" __global__ void f(int* x) {}', "g")
    assert launch_status(lambda: absent((1,), (1,), (None,))) == 500
    xp.RawKernel("__global__ void f(int* x) {}", "_Z1fPi")((1,), (1,), (xp.zeros(1, dtype=xp.int32),))


@pytest.mark.emulated
def test_an_unknown_name_is_explained(xp: Any) -> None:
    with pytest.raises(tcuda.AcceleratorError, match='not declared extern "C".*name_expressions'):
        xp.RawKernel("namespace n { __global__ void f() {} }", "f").compile()
    with pytest.raises(tcuda.AcceleratorError, match="The kernels of the module are: f, h."):
        xp.RawKernel('extern "C" { __global__ void f() {} __global__ void h() {} }', "g").compile()


def test_compile_writes_the_messages_of_the_compiler(xp: Any) -> None:
    log = io.StringIO()
    # The source must be new, so that the compiler runs.
    code = f'#warning "look here" \nextern "C" __global__ void f() {{}} // {uuid.uuid4()}'
    xp.RawKernel(code, "f").compile(log_stream=log)
    assert "look here" in log.getvalue()


def test_a_kernel_is_pickled(xp: Any) -> None:
    x = xp.zeros(1, dtype=xp.int32)
    copied = pickle.loads(pickle.dumps(kernel(xp, "x[0] = N;", options=("-DN=4",))))
    copied((1,), (1,), (x,))
    assert (x.item(), copied.options) == (4, ("-DN=4",))


def test_a_kernel_runs_on_the_stream_that_is_named(xp: Any, runtime: Any) -> None:
    stream = tcuda.Stream()
    x = xp.zeros(1, dtype=xp.int32)
    tcuda.current_stream().synchronize()
    kernel(xp, "x[0] = 5;")((1,), (1,), (x,), stream=stream)
    stream.synchronize()
    assert x.item() == 5


@pytest.mark.parametrize("devices", [2])
def test_each_device_compiles_for_itself(devices: int, xp: Any) -> None:
    if tcuda.device_count() < devices:
        pytest.skip("needs two devices")
    store = kernel(xp, "x[0] = 6;")
    for device in range(devices):
        with tcuda.device(device):
            x = xp.zeros(1, dtype=xp.int32)
            store((1,), (1,), (x,))
            assert x.item() == 6


def test_a_captured_kernel_runs_at_every_launch(xp: Any) -> None:
    add = kernel(xp, "atomicAdd(x, 1);")
    x = xp.zeros(1, dtype=xp.int32)
    add((1,), (1,), (x,))
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        add((1,), (2,), (x,))
    assert x.item() == 1
    graph.replay()
    graph.replay()
    tcuda.synchronize()
    assert x.item() == 5


def test_memory_of_the_pool_of_a_graph_may_be_used_again(xp: Any) -> None:
    """An array that only the capture held is gone at the launch, and the graph still writes to its memory."""
    fill = kernel(xp, "x[threadIdx.x] = threadIdx.x;")
    total = kernel(xp, "atomicAdd(y, x[threadIdx.x]);", "const int* x, int* y")
    y = xp.zeros(1, dtype=xp.int32)
    fill((1,), (8,), (xp.zeros(8, dtype=xp.int32),))
    total((1,), (8,), (xp.zeros(8, dtype=xp.int32), y))
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        temporary = xp.empty(8, dtype=xp.int32)
        fill((1,), (8,), (temporary,))
        total((1,), (8,), (temporary, y))
        del temporary
    graph.replay()
    tcuda.synchronize()
    assert y.item() == 28


@pytest.mark.emulated
def test_a_kernel_keeps_no_array_alive(xp: Any) -> None:
    x = xp.zeros(1000, dtype=xp.int32)
    block = weakref.ref(x.data.mem)
    kernel(xp, "x[0] = 1;")((1,), (1,), (x,))
    del x
    gc.collect()
    assert block() is None


@pytest.mark.emulated
def test_a_kernel_takes_time_on_its_stream(xp: Any) -> None:
    """Require the time of 32 operations for each thread."""
    stream = tcuda.Stream()
    x = xp.zeros(1, dtype=xp.int32)
    add = kernel(xp, "")
    clock = tcuda.emulation.clock()
    tcuda.synchronize()
    with tcuda.stream(stream):
        before = clock.now()
        add((1024,), (1024,), (x,))
        assert not stream.query()
        stream.synchronize()
    assert clock.now() - before == pytest.approx(2000 + 32 * 1024 * 1024 // 20_000, abs=2000)


# Failures, which CUDA reports later, after which no call to the device succeeds.


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("body", "write", "size", "text"),
    [
        ("x[32] = 1;", "write", 4, "The access is right after the block of 128 bytes of the argument x at "),
        ("x[33] = 1;", "write", 4, "The access is 4 bytes after the block of 128 bytes of the argument x at "),
        ("x[0] = x[40];", "read", 4, "The access is 32 bytes after the block of 128 bytes of the argument x at "),
        ("long long wide = 1; memcpy(x + 31, &wide, 8);", "write", 8,
         "The access begins inside the block of 128 bytes of the argument x at .* and ends 4 bytes after it."),
        ("*(int*)4 = 1;", "write", 4, "This is a null pointer."),
        ("*(char*)(1ull << 40) = 1;", "write", 1, "No device has memory at this address. The address may be"),
    ],
)  # fmt: skip
def test_an_illegal_access_is_described(body: str, write: str, size: int, text: str, xp: Any) -> None:
    x = xp.zeros(32, dtype=xp.int32)
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        kernel(xp, f"if (blockIdx.x == 1 && threadIdx.x == 2) {{ {body} }}")((2,), (4,), (x,))
    assert caught.value.error_code == 700
    lines = str(caught.value).splitlines()
    assert lines[0] == "CUDA error: an illegal memory access was encountered"
    assert lines[1] == "cuLaunchKernel(f) failed with cudaErrorIllegalAddress (700)."
    assert lines[2].startswith(f"Invalid __global__ {write} of size {size} bytes at 0x")
    assert re.fullmatch(r"    in f at kernel\.cu:\d+, by thread \(2, 0, 0\) of block \(1, 0, 0\)\.", lines[3])
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(lines[4])
    restored = pickle.loads(pickle.dumps(caught.value))
    assert (str(restored), restored.details) == (str(caught.value), caught.value.details)
    x[0] = 1  # The device can still be used.
    assert x[0].item() == 1


@pytest.mark.emulated
@pytest.mark.parametrize("index", ["32", "threadIdx.x + 31", "40000"])
def test_an_index_beyond_the_dynamic_shared_memory_is_refused(index: str, xp: Any) -> None:
    store = kernel(xp, f"extern __shared__ int s[]; s[{index}] = 1; x[0] = s[{index} - 1];")
    with (
        pytest.raises(tcuda.AcceleratorError, match="beyond the dynamic shared memory of the launch") as caught,
        synchronized(),
    ):
        store((1,), (2,), (xp.zeros(1, dtype=xp.int32),), shared_mem=128)
    assert caught.value.error_code == 700


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("index", "text"),
    [
        (128, "The access is right after the block of 512 bytes of the argument x at {1:#x}."),
        (130, "The access is 8 bytes after the block of 512 bytes of the argument x at {1:#x}."),
        (-1, "The access is 4 bytes before the block of 512 bytes of the argument x at {1:#x}."),
    ],
)
def test_without_the_cache_no_live_block_lies_beside_an_array(index: int, text: str, xp: Any) -> None:
    with tcuda.memory.caching_allocator_disabled():
        arrays = [xp.zeros(128, dtype=xp.int32) for _ in range(8)]
    arrays.sort(key=lambda array: array.data.ptr)
    # Memory of another test may lie between two of the arrays, and not between the nearest two.
    near, meant = min(itertools.pairwise(arrays), key=lambda pair: pair[1].data.ptr - pair[0].data.ptr)
    load = kernel(xp, "y[0] = x[i];", "int* x, int i, int* y")
    load((1,), (1,), (meant, 127, arrays[0]))
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        load((1,), (1,), (meant, index, arrays[0]))
    assert caught.value.error_code == 700
    assert str(caught.value).splitlines()[4] == text.format(near.data.ptr, meant.data.ptr)


PADDED = """
import sys
import tcuda
from tcuda import xp

x, y = xp.zeros(128, dtype=xp.int32), xp.zeros(128, dtype=xp.int32)
print(y.data.ptr - x.data.ptr, tcuda.memory_allocated(), tcuda.memory_stats()["requested_bytes.all.current"])
code = 'extern "C" __global__ void store(int* x, int i, int* y) { x[i] = 5; if (i < 0) y[0] = 1; }'
store = xp.RawKernel(code, "store")
try:
    store((1,), (1,), (x, 128, y))
    tcuda.synchronize()
except tcuda.AcceleratorError as error:
    print(error.error_code, "right after the block of 512 bytes" in str(error))
print(y.get()[0])
"""


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("checks", "printed"), [("memory", "512 1024 1024 5"), ("memory,padding", "1024 2048 1024 700 True 0")]
)
def test_the_padding_separates_arrays_that_fill_their_blocks(checks: str, printed: str, output_of: OutputOf) -> None:
    assert output_of(PADDED, TCUDA_EMULATED_CHECKS=checks).split() == printed.split()


@pytest.mark.emulated
@pytest.mark.eager
def test_memory_that_was_freed_is_refused(xp: Any) -> None:
    x = xp.zeros(1 << 20, dtype=xp.int32)
    address = x.data.ptr
    del x
    with (
        pytest.raises(tcuda.AcceleratorError, match="The memory is free: its block was freed") as caught,
        synchronized(),
    ):
        kernel(xp, "x[1000] = 1;")((1,), (1,), (address,))
    assert caught.value.error_code == 700


@pytest.mark.emulated
def test_pointers_in_memory_reach_other_blocks(xp: Any) -> None:
    x = xp.arange(4, dtype=xp.int32)
    table = xp.asarray([x.data.ptr, x[2:].data.ptr], dtype=xp.uint64)
    kernel(xp, "t[0][0] = 7; t[1][1] = 8;", "int** t")((1,), (1,), (table,))
    assert x.get().tolist() == [7, 1, 2, 8]


@pytest.mark.emulated
def test_memory_of_cuda_malloc_and_page_locked_memory_are_reached(xp: Any, runtime: Any) -> None:
    store = kernel(xp, "x[i] = 9;", "int* x, int i")
    ptr = runtime.malloc(512)
    host = np.zeros(4, dtype=np.int32)
    address = host.ctypes.data
    try:
        store((1,), (1,), (ptr, 100))
        with pytest.raises(tcuda.AcceleratorError, match="right after the block of 512 bytes"), synchronized():
            store((1,), (1,), (ptr, 128))
        with pytest.raises(tcuda.AcceleratorError, match="may be of the host"), synchronized():
            store((1,), (1,), (address, 3))
        runtime.hostRegister(address, host.nbytes, 0)
        store((1,), (1,), (address, 3))
        runtime.hostUnregister(address)
    finally:
        runtime.free(ptr)
    assert host.tolist() == [0, 0, 0, 9]


@pytest.mark.emulated
def test_memory_of_another_device_needs_peer_access(xp: Any, runtime: Any) -> None:
    with tcuda.device(1):
        x = xp.zeros(4, dtype=xp.int32)
        tcuda.synchronize()
    store = kernel(xp, "x[1] = 3;")
    with (
        pytest.raises(tcuda.AcceleratorError, match="on device 1, and device 0 has no access") as caught,
        synchronized(),
    ):
        store((1,), (1,), (x,))
    assert caught.value.error_code == 700
    runtime.deviceEnablePeerAccess(1)
    try:
        store((1,), (1,), (x,))
        tcuda.synchronize()
    finally:
        runtime.deviceDisablePeerAccess(1)
    with tcuda.device(1):
        assert x.get().tolist() == [0, 3, 0, 0]


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ("assert(threadIdx.x < 3);", 710, "block: [0, 0, 0], thread: [3, 0, 0]: Assertion `threadIdx.x < 3` failed."),
        ("if (threadIdx.x == 3) __trap();", 719, "thread: [3, 0, 0]: The kernel called __trap()."),
        (
            "__shared__ int s[4]; s[threadIdx.x + x[0] + 1] = 1;",
            700,
            f"index 4 is out of bounds for '{array_type('int', 4)}'",
        ),
        ("x[1] = 1 / x[0];", 719, "division of an integer by zero"),
        ("*(int*)0 = 1;", 719, "Invalid __global__ write of size 4 bytes at 0x0\n"),
        ("*(int*)((char*)x + 2) = 1;", 716, "Misaligned write of size 4 bytes at 0x"),
        ("x[0] = *((short*)((char*)x + 1));", 716, ", which is no multiple of 2\n"),
        ("*(double*)(x + 1) = *(double*)x;", 716, "Misaligned write of size 8 bytes at 0x"),
        pytest.param("*(float4*)x = *(float4*)(x + 1);", 716, "'const struct float4' at 0x", marks=needs_gcc),
    ],
)
def test_failures_in_kernels_have_the_statuses_of_cuda(body: str, status: int, text: str, xp: Any) -> None:
    x = xp.zeros(4, dtype=xp.int32)
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        kernel(xp, body)((1,), (4,), (x,))
    assert caught.value.error_code == status
    assert text in str(caught.value)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("*(int*)0 = 1;", "cudaErrorLaunchFailure"),
        ("*(int*)((char*)x + 2) = 1;", "cudaErrorMisalignedAddress"),
        ("__trap();", "cudaErrorLaunchFailure"),
        ("x[1ll << 36] = 1;", "cudaErrorIllegalAddress"),
    ],
)
def test_a_gpu_has_the_statuses_of_failures(body: str, error: str, run_python: RunPython) -> None:
    code = f"""
import cupy
x = cupy.zeros(4, dtype=cupy.int32)
kernel = cupy.RawKernel('extern "C" __global__ void f(int* x) {{ {body} }}', "f")
kernel((1,), (1,), (x,))
try:
    cupy.cuda.runtime.deviceSynchronize()
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(error, flush=True)
import os
os._exit(0)
"""
    assert error in run_python(code).stdout


def test_a_byte_may_have_any_address(xp: Any) -> None:
    x = xp.zeros(2, dtype=xp.int32)
    kernel(xp, "((char*)x)[3] = 1; memcpy((char*)x + 5, x, 3); struct __attribute__((packed)) P { char a; int b; };"
               "((P*)x)->b += 1;")((1,), (1,), (x,))  # fmt: skip
    assert x.get().view("i1").tolist() == [0, 1, 0, 1, 0, 0, 0, 0]


EARLY = "if (threadIdx.x >= 16) return; __syncthreads(); x[threadIdx.x] = 1;"


@pytest.mark.filterwarnings("ignore:In a block of the kernel")
def test_a_barrier_does_not_wait_for_threads_that_have_returned(xp: Any) -> None:
    x = xp.zeros(32, dtype=xp.int32)
    kernel(xp, EARLY)((1,), (32,), (x,))
    assert x.get().tolist() == [1] * 16 + [0] * 16


@pytest.mark.emulated
@pytest.mark.eager
def test_the_first_barrier_that_some_threads_do_not_reach_is_a_warning(xp: Any) -> None:
    x = xp.zeros(32, dtype=xp.int32)
    early = kernel(xp, f"if (blockIdx.x == 0) return; {EARLY} x[0] = 1;")
    text = "In a block of the kernel f, 16 threads had returned when the other 16 threads reached __syncthreads()"
    with pytest.warns(RuntimeWarning, match=re.escape(text)) as caught:
        early((2,), (32,), (x,))
    assert caught[0].filename == __file__
    early((2,), (32,), (x,))  # does not warn again


@pytest.mark.emulated
def test_a_barrier_that_some_threads_do_not_reach_can_be_an_error(xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "memory,barriers")
    x = xp.zeros(32, dtype=xp.int32)
    with pytest.raises(tcuda.AcceleratorError) as caught, synchronized():
        kernel(xp, f"if (blockIdx.x == 0) return; {EARLY}")((2,), (32,), (x,))
    assert caught.value.error_code == 702
    lines = caught.value.details.splitlines()
    assert lines[0] == "The block (1, 0, 0) cannot go on: 16 threads wait at __syncthreads(), 16 threads have returned"
    assert re.fullmatch(r"    in f at kernel\.cu:\d+\.", lines[1])
    assert "A GPU of today does not wait for the threads that have returned" in lines[2]
    assert "TCUDA_EMULATED_CHECKS=memory" in lines[2]


@pytest.mark.emulated
def test_threads_that_wait_at_different_places_are_a_deadlock(xp: Any) -> None:
    x = xp.zeros(32, dtype=xp.int32)
    waits = kernel(xp, "if (threadIdx.x < 16) __syncthreads(); else __syncwarp(); x[threadIdx.x] = 1;")
    with pytest.raises(tcuda.AcceleratorError, match="16 threads wait at __syncthreads") as caught, synchronized():
        waits((1,), (32,), (x,))
    assert caught.value.error_code == 702


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("checks", "strict", "checked"),
    [("0", False, False), ("memory", False, True), (" barriers , memory", True, True), ("barriers", True, False)],
)
def test_checks_can_be_chosen(
    checks: str, strict: bool, checked: bool, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", checks)
    x = xp.zeros(32, dtype=xp.int32)
    assert launch_status(lambda: kernel(xp, EARLY)((1,), (32,), (x,))) == (702 if strict else 0)
    assert x.get().tolist() == [0 if strict else 1] * 16 + [0] * 16
    past = kernel(xp, "x[32] = 1;")  # The block of the array ends later than the array.
    assert launch_status(lambda: past((1,), (1,), (x,))) == (700 if checked else 0)


@pytest.mark.emulated
def test_a_process_without_a_compiler_is_told_what_to_install(output_of: OutputOf, tmp_path: Any) -> None:
    code = """
import tcuda.emulation
tcuda.emulation.enable()
x = tcuda.xp.zeros(1)
try:
    tcuda.xp.RawKernel('extern "C" __global__ void f() {}', "f")((1,), (1,), ())
except RuntimeError as error:
    print(error)
"""
    printed = output_of(code, PATH=str(tmp_path), CXX=None, TCUDA_RUNTIME="emulated")
    assert "apt install g++" in printed
