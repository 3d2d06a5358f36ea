"""A race detector is told of the bytes that kernels on emulated devices have read and written, and of no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tcuda
from support.race_recorder import BOTH, READ, WRITE, RaceRecorder, recorded, span
from tcuda._process.lazy import cuda
from tcuda.emulation import xp
from tcuda.emulation.rtc.global_variables import readable
from tcuda.emulation.rtc.parameter_names import parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcuda.emulation.runtime import EmulatedRuntime

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("memory_comes_back")]

_INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


@pytest.fixture
def recorder(runtime: EmulatedRuntime) -> Iterator[RaceRecorder]:
    """A recorder that watches until the test ends."""
    with recorded(runtime) as made:
        yield made


def raw(body: str, parameters: str, before: str = "") -> Any:
    """Return a kernel with a body, in which ``i`` is the number of the thread."""
    return xp.RawKernel(f'{before}\nextern "C" __global__ void kernel({parameters}) {{ {_INDEX} {body} }}', "kernel")


def accesses(recorder: RaceRecorder, kernel: Any, blocks: int, threads: int, *args: Any, **options: Any) -> list[Any]:
    """Return the accesses of a launch."""
    recorder.take()
    kernel((blocks,), (threads,), args, **options)
    [(_, found)] = recorder.operations()
    return found


def region(array: Any, first: int, count: int, step: int, kind: int, label: str) -> tuple[Any, ...]:
    """Return the access of elements of ``array``, each ``step`` elements after the last."""
    size = array.itemsize
    return array.data.ptr + first * size, size, (count,), (step * size,), kind, label


def elements(array: Any, first: int, count: int, kind: int, label: str) -> tuple[Any, ...]:
    """Return the access of neighbouring elements of ``array``."""
    return span(array.data.ptr + first * array.itemsize, count * array.itemsize, kind, label)


def bytes_of(found: list[Any], kind: int, begin: int, size: int) -> set[int]:
    """Return the bytes that are read or written, as distances from ``begin``."""
    covered: set[int] = set()
    for address, itemsize, shape, strides, of_kind, *_ in found:
        if of_kind & kind:
            starts = np.full((), address - begin)
            for length, stride in zip(shape, strides, strict=True):
                starts = starts[..., None] + np.arange(length) * stride
            covered.update((starts[..., None] + np.arange(itemsize)).ravel().tolist())
    return {byte for byte in covered if 0 <= byte < size}


# Patterns


def test_neighbouring_elements_are_one_range(recorder: RaceRecorder) -> None:
    x, y = xp.ones(300, "f"), xp.ones(300, "d")
    kernel = raw("if (i < n) y[i] = x[i];", "const float *x, double *y, int n")
    found = accesses(recorder, kernel, 3, 128, x, y, np.int32(300))
    assert sorted(found) == sorted([elements(x, 0, 300, READ, "x"), elements(y, 0, 300, WRITE, "y")])


def test_elements_that_are_not_used_are_no_access(recorder: RaceRecorder) -> None:
    x = xp.ones(100, "f")
    assert accesses(recorder, raw("x[10 + i] = 1;", "float *x"), 1, 7, x) == [elements(x, 10, 7, WRITE, "x")]


def test_a_write_after_a_read_of_the_same_element_is_seen(recorder: RaceRecorder) -> None:
    x = xp.zeros(64, "f")  # twice 0 is 0, so the contents do not tell
    assert accesses(recorder, raw("x[i] *= 2;", "float *x"), 1, 64, x) == [elements(x, 0, 64, BOTH, "x")]


def test_strided_elements_are_one_region(recorder: RaceRecorder) -> None:
    x = xp.ones(1000, "f")
    found = accesses(recorder, raw("x[3 * i + 1] = 0;", "float *x"), 2, 100, x)
    assert found == [region(x, 1, 200, 3, WRITE, "x")]


def test_a_block_of_rows_is_one_region(recorder: RaceRecorder) -> None:
    x = xp.ones((64, 64), "f")
    found = accesses(recorder, raw("x[(8 + threadIdx.x / 16) * 64 + 16 + i % 16] = 0;", "float *x"), 1, 256, x)
    assert found == [(x[8, 16].data.ptr, 64, (16,), (256,), WRITE, "x")]


def test_columns_of_rows_are_one_region(recorder: RaceRecorder) -> None:
    x = xp.ones((8, 20), "d")
    found = accesses(recorder, raw("x[threadIdx.x / 4 * 40 + i % 4 * 3] = 0;", "double *x"), 1, 16, x)
    assert found == [(x.data.ptr, 8, (4, 4), (320, 24), WRITE, "x")]


def test_two_kernels_that_interleave_share_no_byte(recorder: RaceRecorder) -> None:
    x = xp.ones(2000, "h")
    even = accesses(recorder, raw("x[2 * i] = 1;", "short *x"), 4, 250, x)
    odd = accesses(recorder, raw("x[2 * i + 1] = 1;", "short *x"), 4, 250, x)
    assert len(even) == len(odd) == 1
    written = [bytes_of(found, WRITE, x.data.ptr, x.nbytes) for found in (even, odd)]
    assert not written[0] & written[1]
    assert len(written[0] | written[1]) == x.nbytes


def test_only_the_elements_that_pass_a_condition_are_written(recorder: RaceRecorder) -> None:
    rng = np.random.default_rng(3)
    mask = rng.random(500) < 0.3
    x, condition = xp.zeros(500, "f"), xp.asarray(mask)
    found = accesses(recorder, raw("if (c[i]) x[i] = 1;", "float *x, const bool *c"), 5, 100, x, condition)
    assert elements(condition, 0, 500, READ, "c") in found
    expected = {4 * place + byte for place in np.flatnonzero(mask).tolist() for byte in range(4)}
    assert bytes_of(found, WRITE, x.data.ptr, x.nbytes) == expected


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_scattered_elements_of_each_size(recorder: RaceRecorder, size: int) -> None:
    places = np.random.default_rng(size).permutation(3000)[:200]
    x, index = xp.zeros(3000, f"u{size}"), xp.asarray(places.astype("i4"))
    kind = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}[size]
    found = accesses(recorder, raw("x[index[i]] = 0;", f"{kind} *x, const int *index"), 2, 100, x, index)
    expected = {size * place + byte for place in places.tolist() for byte in range(size)}
    assert bytes_of(found, WRITE, x.data.ptr, x.nbytes) == expected
    assert bytes_of(found, READ, x.data.ptr, x.nbytes) == set()


def test_too_many_regions_become_ranges_that_are_only_possible(recorder: RaceRecorder) -> None:
    places = np.sort(np.random.default_rng(1).permutation(200_000)[:20_000])
    x, index = xp.zeros(200_000, "f"), xp.asarray(places.astype("i4"))
    found = accesses(recorder, raw("x[index[i]] = 0;", "float *x, const int *index"), 200, 100, x, index)
    assert elements(index, 0, 20_000, READ, "index") in found
    ranges = [access for access in found if access[5] == "x"]
    assert 1 < len(ranges) < 100
    assert all(access[6:] == ("possible",) for access in ranges)
    covered = bytes_of(ranges, WRITE, x.data.ptr, x.nbytes)
    assert covered >= {4 * place for place in places.tolist()}
    assert min(covered) == 4 * places[0]
    assert max(covered) == 4 * places[-1] + 3


def test_accesses_across_pages_and_at_odd_addresses(recorder: RaceRecorder) -> None:
    x = xp.zeros(100_000, "b")
    body = "memcpy(x + 16000 + i * 40000, x + 60001, 1000); memset(x + 3, 0, 5);"
    found = accesses(recorder, raw(body, "char *x"), 1, 2, x)
    written = bytes_of(found, WRITE, x.data.ptr, x.nbytes)
    assert written == {*range(3, 8), *range(16000, 17000), *range(56000, 57000)}
    assert bytes_of(found, READ, x.data.ptr, x.nbytes) == set(range(60001, 61001))


def test_structures_of_an_odd_size(recorder: RaceRecorder) -> None:
    before = "struct Item { int a[5]; };"
    x, y = xp.zeros(100, "i"), xp.zeros(100, "i")
    kernel = raw("x[2 * i] = y[i]; y[10 + i].a[2] = 1;", "Item *x, Item *y", before)
    found = accesses(recorder, kernel, 1, 4, x, y)
    assert (x.data.ptr, 20, (4,), (40,), WRITE, "x") in found
    assert elements(y, 0, 20, READ, "y") in found
    assert (y.data.ptr + 208, 4, (4,), (20,), WRITE, "y") in found


# What is no memory of a device


def test_shared_memory_and_local_memory_are_no_access(recorder: RaceRecorder) -> None:
    x = xp.ones(128, "f")
    body = """
        __shared__ float tile[64]; extern __shared__ float more[]; float own[64];
        for (int k = 0; k < 64; ++k) own[(k * 7 + i) % 64] = k;
        tile[i] = x[i]; more[i] = own[x[0] > 2 ? 1 : 3]; __syncthreads();
        x[64 + i] = tile[63 - i] + more[(i + 1) % 64] + own[i];
    """
    found = accesses(recorder, raw(body, "float *x"), 1, 64, x, shared_mem=256)
    assert found == [elements(x, 0, 64, READ, "x"), elements(x, 64, 64, WRITE, "x")]


def test_a_kernel_without_accesses_has_none(recorder: RaceRecorder) -> None:
    x = xp.ones(4)
    assert accesses(recorder, raw("if (i == 5) x[0] = 1;", "double *x"), 1, 4, x) == []


# Atomic functions


def test_an_atomic_function_reads_and_writes(recorder: RaceRecorder) -> None:
    x = xp.zeros(10, "i")
    assert accesses(recorder, raw("atomicAdd(x + i % 5 * 2, i);", "int *x"), 1, 32, x) == [
        region(x, 0, 5, 2, BOTH, "x")
    ]


@pytest.mark.parametrize("checks", ["memory", "memory,races"])
def test_compare_and_swap_without_success_only_reads(
    recorder: RaceRecorder, monkeypatch: pytest.MonkeyPatch, checks: str
) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", checks)
    x = xp.zeros(4, "i")
    assert accesses(recorder, raw("atomicCAS(x, 7, 8);", "int *x"), 1, 4, x) == [elements(x, 0, 1, READ, "x")]


# Arguments


def test_pointers_in_a_structure_have_the_name_of_the_parameter(recorder: RaceRecorder) -> None:
    a, b = xp.ones(8, "f"), xp.ones(8, "f")
    pointers = np.array([a.data.ptr, b.data.ptr], np.uint64).view("V16")[0]
    kernel = raw("both.b[i] = both.a[i];", "Pair both", "struct Pair { float *a, *b; };")
    found = accesses(recorder, kernel, 1, 8, pointers)
    assert sorted(found) == sorted([elements(a, 0, 8, READ, "both"), elements(b, 0, 8, WRITE, "both")])


def test_views_of_one_array_have_the_names_of_their_parameters(recorder: RaceRecorder) -> None:
    whole = xp.ones(20, "f")
    first, second = whole[:10], whole[10:]
    found = accesses(recorder, raw("x[i] = y[i];", "float *x, const float *y"), 1, 10, first, second)
    assert found == [elements(whole, 0, 10, WRITE, "x"), elements(whole, 10, 10, READ, "y")]


def test_memory_beyond_the_argument_in_the_same_block_is_seen(recorder: RaceRecorder) -> None:
    whole = xp.ones(20, "f")
    found = accesses(recorder, raw("x[i] = 0;", "float *x"), 1, 12, whole[2:4])
    assert found == [elements(whole, 2, 12, WRITE, "x")]


def test_memory_that_is_no_argument_has_no_name(recorder: RaceRecorder) -> None:
    table, x = xp.zeros(1, "u8"), xp.ones(8, "f")
    xp.copyto(table, xp.full(1, x.data.ptr, "u8"))
    found = accesses(recorder, raw("(*table)[i] = 0;", "float **table"), 1, 8, table)
    assert sorted(found) == sorted([elements(table, 0, 1, READ, "table"), elements(x, 0, 8, WRITE, "")])


def test_page_locked_memory_is_seen(recorder: RaceRecorder, runtime: EmulatedRuntime) -> None:
    host = np.zeros(64, "f")
    address = host.ctypes.data
    runtime.hostRegister(address, host.nbytes, 0)
    try:
        found = accesses(recorder, raw("x[i] = 1;", "float *x"), 1, 16, np.uint64(address))
    finally:
        runtime.hostUnregister(address)
    assert found == [span(address, 64, WRITE, "x")]


# Global variables


def test_global_variables_are_memory(recorder: RaceRecorder) -> None:
    code = """
    __constant__ float weights[3];
    namespace ns { __device__ int counters[8]; }
    __shared__ int tile[32];
    extern "C" __global__ void kernel(float *x) {
        static int calls;
        tile[threadIdx.x] = calls;
        x[threadIdx.x] = weights[1] + tile[threadIdx.x];
        ns::counters[2 * threadIdx.x] += 1;
    }
    """
    module = xp.RawModule(code=code)
    weights = module.get_global("weights").ptr
    x = xp.zeros(4, "f")
    found = accesses(recorder, module.get_function("kernel"), 1, 4, x)
    assert span(weights + 4, 4, READ, "weights") in found
    assert elements(x, 0, 4, WRITE, "x") in found
    [counters] = [access for access in found if access[5] == "ns::counters"]
    assert counters[1:5] == (4, (4,), (8,), BOTH)
    assert len(found) == 3


def test_variables_keep_their_values_when_a_watch_begins(runtime: EmulatedRuntime) -> None:
    code = '__device__ int count; extern "C" __global__ void kernel(int *x) { count += 1; *x = count; *x += 0; }'
    kernel = xp.RawModule(code=code).get_function("kernel")
    x = xp.zeros(1, "i")
    kernel((1,), (1,), (x,))
    with recorded(runtime) as recorder:
        found = accesses(recorder, kernel, 1, 1, x)
    kernel((1,), (1,), (x,))
    assert x.get().tolist() == [3]
    assert [access[4] & WRITE for access in found if access[5] == "x"] == [WRITE]


def test_a_kernel_that_was_loaded_before_the_watch_is_seen_as_well(runtime: EmulatedRuntime) -> None:
    x = xp.zeros(64, "f")
    kernel = raw("/* loaded before the watch */ x[i] *= 2;", "float *x")
    kernel((1,), (64,), (x,))
    with recorded(runtime) as recorder:
        assert accesses(recorder, kernel, 1, 64, x) == [elements(x, 0, 64, BOTH, "x")]


# Kinds of kernels


def test_kernels_of_strings_have_the_names_of_their_parameters(recorder: RaceRecorder) -> None:
    x, y = xp.ones(100, "f"), xp.zeros(100, "f")
    kernel = xp.ElementwiseKernel("T in", "T out", "out = in * 2", "twice")
    recorder.take()
    kernel(x[::2], y[50:])
    [(name, found)] = recorder.operations()
    assert name == "twice"
    assert sorted(found) == sorted([region(x, 0, 50, 2, READ, "in"), elements(y, 50, 50, WRITE, "out")])


def test_a_reduction_reads_its_input_and_writes_its_output(recorder: RaceRecorder) -> None:
    x = xp.ones((10, 20), "f")
    kernel = xp.ReductionKernel("T in", "T out", "in", "a + b", "out = a", "0", "total")
    recorder.take()
    total = kernel(x, axis=1)
    [(name, found)] = recorder.operations()
    assert name == "total"
    assert sorted(found) == sorted([elements(x, 0, 200, READ, "in"), elements(total, 0, 10, WRITE, "out")])


def test_every_launch_of_a_graph_is_measured(recorder: RaceRecorder) -> None:
    x, index = xp.zeros(100, "f"), xp.zeros(4, "i")
    kernel = raw("x[index[i]] = 1;", "float *x, const int *index")
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        kernel((1,), (4,), (x, index))
    written = []
    for first in (10, 50):
        index[...] = xp.arange(first, first + 4, dtype="i")
        recorder.take()
        graph.replay()
        [node] = [call for call in recorder.take() if call[0] == "set_node"]
        written.append([access for access in node[3] if access[5] == "x"])
    assert written == [[elements(x, 10, 4, WRITE, "x")], [elements(x, 50, 4, WRITE, "x")]]


def test_a_launch_that_fails_is_no_operation(recorder: RaceRecorder) -> None:
    x = xp.ones(4)
    with pytest.raises(tcuda.AcceleratorError):
        accesses(recorder, raw("x[1 << 30] = 1;", "double *x"), 1, 1, x)
    assert recorder.operations() == []


def test_without_checks_the_whole_arrays_are_possible(recorder: RaceRecorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCUDA_EMULATED_CHECKS", "0")
    x = xp.ones((4, 6))
    found = accesses(recorder, raw("/* without checks */ x[i] = 3;", "double *x"), 1, 1, x[:, ::2])
    assert found == [(x.data.ptr, 8, (4, 3), (48, 16), BOTH, "x", "possible")]


def test_before_a_run_the_whole_arrays_are_possible(recorder: RaceRecorder, runtime: EmulatedRuntime) -> None:
    x, y = xp.ones(6), xp.ones(3)
    told: list[Any] = []
    launch = runtime.launch

    def late(*args: Any, accesses: Any, **options: Any) -> None:
        told.extend(accesses())
        launch(*args, accesses=accesses, **options)

    kernel = raw("x[i] = y[i];", "double *x, const double *y")
    kernel((1,), (1,), (x, y))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cuda, "launch", late)
        kernel((1,), (1,), (x, y))
        y[xp.asarray([2])]
    assert told[:2] == [
        (x.data.ptr, 8, (6,), (8,), BOTH, "x", "possible"),
        (y.data.ptr, 8, (3,), (8,), BOTH, "y", "possible"),
    ]
    assert (y.data.ptr, 8, (3,), (8,), READ, "a", "possible") in told


# Names


def test_names_of_parameters() -> None:
    source = """
    // __global__ void first(int wrong) {}
    __global__ void first(int a, const float *__restrict__ b, CArray<float, 1> c, int d[3], unsigned e = f(1, 2));
    template <typename T> __global__ void __launch_bounds__(64, 2) second(T *x) {}
    namespace ns { __global__ void third() {} }
    """
    assert parameter_names(source, "first") == ["a", "b", "c", "d", "e"]
    assert parameter_names(source, "second<float>") == ["x"]
    assert parameter_names(source, "ns::third") == []
    assert parameter_names(source, "fourth") == []


@pytest.mark.parametrize("words", ["__block_size__((64, 1, 1))", "__align__(16)", "__launch_bounds__(f(64))"])
def test_brackets_before_the_name_of_a_kernel_have_no_parameters(words: str) -> None:
    assert parameter_names(f"__global__ {words} void f(int a, float *b) {{}}", "f") == ["a", "b"]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("table", "table"),
        ("_ZL4mine", "mine"),
        ("_ZN2ns7counterE", "ns::counter"),
        ("_ZN2ns12_GLOBAL__N_16hiddenE", "ns::(anonymous)::hidden"),
        ("_Z", "_Z"),
    ],
)
def test_names_of_variables(symbol: str, name: str) -> None:
    assert readable(symbol) == name
