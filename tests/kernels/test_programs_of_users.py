"""Kernels as users write them: shapes of code that samples, forums and libraries are full of, against NumPy."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")

# One source for all cases, so that the compiler runs once.
SOURCE = r"""
#define ROWS 8
#define SIDE 32
typedef unsigned int word;

template <class T> struct Scratch {
    __device__ operator T*() { extern __shared__ int bytes[]; return reinterpret_cast<T*>(bytes); }
};
template <class T> struct Pair;
template <> struct Pair<float> { typedef float2 type; };
template <> struct Pair<double> { typedef double2 type; };

enum class Order { up, down };
struct Settings { float scale; int shift; };
struct Less { template <class T> __device__ bool operator()(T a, T b) const { return a < b; } };

__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};
__device__ word finished = 0;
static __device__ __forceinline__ float square(float x) { return x * x; }

template <class T> __device__ T sum_of_warp(T value) {
    #pragma unroll
    for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

template <class T, word count> __global__ void block_sums(const T* __restrict__ in, T* __restrict__ out, word n) {
    T* scratch = Scratch<T>();
    T total = 0;
    for (word i = blockIdx.x * count + threadIdx.x; i < n; i += count * gridDim.x) total += in[i];
    total = sum_of_warp(total);
    if (threadIdx.x % warpSize == 0) scratch[threadIdx.x / warpSize] = total;
    __syncthreads();
    if (threadIdx.x < 32) {
        total = sum_of_warp(threadIdx.x < count / 32 ? scratch[threadIdx.x] : T(0));
        if (threadIdx.x == 0) out[blockIdx.x] = total;
    }
}

template <class T> __global__ void swap_pairs(typename Pair<T>::type* x) {
    typename Pair<T>::type pair = x[threadIdx.x];
    x[threadIdx.x] = {pair.y, pair.x};
}

template <Order order, class Compare = Less> __global__ void odd_even_sort(int* x, int n) {
    Compare before;
    for (int step = 0; step < n; ++step) {
        int i = 2 * threadIdx.x + step % 2;
        if (i + 1 < n && (order == Order::up ? before(x[i + 1], x[i]) : before(x[i], x[i + 1]))) {
            int kept = x[i];
            x[i] = x[i + 1];
            x[i + 1] = kept;
        }
        __syncthreads();
    }
}

extern "C" {

__global__ void transposed(const float* in, float* out, int width, int height) {
    __shared__ float tile[SIDE][SIDE + 1];
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    for (int row = 0; row < SIDE; row += ROWS)
        if (x < width && y + row < height) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * width + x];
    __syncthreads();
    x = blockIdx.y * SIDE + threadIdx.x, y = blockIdx.x * SIDE + threadIdx.y;
    for (int row = 0; row < SIDE; row += ROWS)
        if (x < height && y + row < width) out[(y + row) * height + x] = tile[threadIdx.x][threadIdx.y + row];
}

__global__ void byte_counts(const word* in, word n, word* out) {
    __shared__ word counts[256];
    for (word i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    for (word i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        for (int byte = 0; byte < 4; ++byte) atomicAdd(counts + (in[i] >> 8 * byte & 0xffu), 1u);
    __syncthreads();
    for (word i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], counts[i]);
}

__global__ void exclusive_sums(const float* in, float* out, int n) {
    extern __shared__ float work[];
    int t = threadIdx.x, stride = 1;
    work[2 * t] = in[2 * t];
    work[2 * t + 1] = in[2 * t + 1];
    for (int active = n >> 1; active > 0; active >>= 1, stride *= 2) {
        __syncthreads();
        if (t < active) work[stride * (2 * t + 2) - 1] += work[stride * (2 * t + 1) - 1];
    }
    if (t == 0) work[n - 1] = 0;
    for (int active = 1; active < n; active *= 2) {
        stride >>= 1;
        __syncthreads();
        if (t < active) {
            int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1;
            float kept = work[left];
            work[left] = work[right];
            work[right] += kept;
        }
    }
    __syncthreads();
    out[2 * t] = work[2 * t];
    out[2 * t + 1] = work[2 * t + 1];
}

// The block that comes last adds what the other blocks have stored.
__global__ void sum_in_one_launch(const float* in, volatile float* out, int n) {
    __shared__ bool last;
    float total = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) total += in[i];
    total = sum_of_warp(total);
    if (threadIdx.x == 0) {
        out[blockIdx.x] = total;
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int block = 1; block < gridDim.x; ++block) out[0] = out[0] + out[block];
}

__global__ void smoothed(const float* in, float* out, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    auto at = [&](int place) { return in[min(max(place, 0), n - 1)]; };
    if (i < n) out[i] = weights[0] * at(i - 1) + weights[1] * at(i) + weights[2] * at(i + 1);
}

__global__ void scaled(const Settings settings, float* x, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = settings.scale * square(x[i]) + settings.shift;
}

// Every lane tries until the lane has had the lock.
__global__ void counted_under_a_lock(int* lock, int* count) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *count += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

__global__ void highest(const float* in, float* out, int n) {
    // Maxima of floats that are not negative are maxima of their bits.
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicMax((int*)out, __float_as_int(in[i]));
}

__global__ void ticks(long long* out) {
    clock_t before = clock();
    out[0] = clock() - before >= 0;
}

}  // extern "C"
"""
TEMPLATES = [
    "block_sums<float, 64>",
    "block_sums<double, 128>",
    "swap_pairs<float>",
    "swap_pairs<double>",
    "odd_even_sort<Order::up>",
    "odd_even_sort<Order::down>",
]
NUMBERS = np.random.default_rng(3).random(5000)


@pytest.fixture
def function(xp: Any) -> Callable[[str], Any]:
    """Get a kernel of the source."""
    module = xp.RawModule(code=SOURCE, options=("-std=c++17",), name_expressions=TEMPLATES)
    found: Callable[[str], Any] = module.get_function
    return found


@pytest.mark.parametrize("declaration", ["static __shared__", "__shared__ static"])
def test_a_shared_array_may_be_declared_static(xp: Any, declaration: str) -> None:
    code = f"""
#define SHARED {declaration}
extern "C" __global__ void reverse(float* x) {{
    SHARED float first[32];
    {declaration} float second[32];
    first[threadIdx.x] = second[31 - threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = second[threadIdx.x] + 100 * first[threadIdx.x];
}}
"""
    x = xp.arange(32, dtype=xp.float32)
    xp.RawKernel(code, "reverse")((1,), (32,), (x,))
    assert x.get().tolist() == [31 - i + 100 * i for i in range(32)]


@pytest.mark.parametrize(("kind", "dtype", "count"), [("float", "float32", 64), ("double", "float64", 128)])
def test_warps_and_shared_memory_add_numbers(kind: str, dtype: str, count: int, function: Any, xp: Any) -> None:
    x = xp.asarray(NUMBERS.astype(dtype))
    out = xp.zeros(3, dtype=x.dtype)
    function(f"block_sums<{kind}, {count}>")((3,), (count,), (x, out, np.uint32(x.size)), shared_mem=128)
    assert out.get().sum() == pytest.approx(NUMBERS.sum(), rel=1e-5)


@pytest.mark.parametrize(("kind", "dtype"), [("float", "float32"), ("double", "float64")])
def test_a_type_of_a_template_chooses_a_vector_type(kind: str, dtype: str, function: Any, xp: Any) -> None:
    x = xp.arange(16, dtype=dtype)
    function(f"swap_pairs<{kind}>")((1,), (8,), (x,))
    assert x.get().tolist() == np.arange(16).reshape(8, 2)[:, ::-1].ravel().tolist()


@pytest.mark.parametrize(("order", "step"), [("up", 1), ("down", -1)])
def test_a_block_sorts(order: str, step: int, function: Any, xp: Any) -> None:
    x = xp.asarray(np.argsort(NUMBERS[:101]).astype(np.int32))
    function(f"odd_even_sort<Order::{order}>")((1,), (51,), (x, 101))
    assert x.get().tolist() == list(range(101))[::step]


def test_a_tile_transposes_a_matrix_with_ragged_edges(function: Any, xp: Any) -> None:
    x = NUMBERS[:2450].reshape(50, 49).astype(np.float32)
    out = xp.zeros((49, 50), dtype=xp.float32)
    function("transposed")((2, 2), (32, 8), (xp.asarray(x), out, 49, 50))
    assert (out.get() == x.T).all()


def test_blocks_count_bytes_with_atomics(function: Any, xp: Any) -> None:
    x = (NUMBERS * 256).astype(np.uint8)
    out = xp.zeros(256, dtype=xp.uint32)
    function("byte_counts")((3,), (96,), (xp.asarray(x.view(np.uint32)), np.uint32(x.size // 4), out))
    assert out.get().tolist() == np.bincount(x, minlength=256).tolist()


def test_a_block_adds_all_numbers_before_each(function: Any, xp: Any) -> None:
    x = np.arange(128, dtype=np.float32)
    out = xp.zeros(128, dtype=xp.float32)
    function("exclusive_sums")((1,), (64,), (xp.asarray(x), out, 128), shared_mem=512)
    assert out.get().tolist() == (np.cumsum(x) - x).tolist()


def test_the_last_block_finds_what_the_others_stored(function: Any, xp: Any) -> None:
    x = xp.asarray(NUMBERS.astype(np.float32))
    for _ in range(2):  # the counter starts again
        out = xp.zeros(7, dtype=xp.float32)
        function("sum_in_one_launch")((7,), (32,), (x, out, x.size))
        assert out.get()[0] == pytest.approx(NUMBERS.sum(), rel=1e-5)


def test_a_stencil_reads_constant_memory(function: Any, xp: Any) -> None:
    x = NUMBERS.astype(np.float32)
    out = xp.zeros(5000, dtype=xp.float32)
    function("smoothed")((20,), (256,), (xp.asarray(x), out, 5000))
    padded = np.pad(x, 1, mode="edge")
    assert out.get() == pytest.approx(padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4)


def test_a_structure_is_passed_by_value(function: Any, xp: Any) -> None:
    settings = np.array((0.5, 3), dtype=[("scale", np.float32), ("shift", np.int32)])
    x = xp.arange(100, dtype=xp.float32)
    function("scaled")((2,), (64,), (settings, x, 100))
    assert x.get().tolist() == (np.arange(100) ** 2 / 2 + 3).tolist()


def test_lanes_of_a_warp_take_a_lock_in_turn(function: Any, xp: Any) -> None:
    lock, count = xp.zeros(1, dtype=xp.int32), xp.zeros(1, dtype=xp.int32)
    function("counted_under_a_lock")((3,), (64,), (lock, count))
    assert count.item() == 192
    assert lock.item() == 0


def test_bits_of_floats_are_compared_as_integers(function: Any, xp: Any) -> None:
    x = NUMBERS.astype(np.float32)
    out = xp.zeros(1, dtype=xp.float32)
    function("highest")((1,), (128,), (xp.asarray(x), out, x.size))
    assert out.item() == x.max()


def test_the_clock_has_a_type_with_a_name(function: Any, xp: Any) -> None:
    out = xp.zeros(1, dtype=xp.int64)
    function("ticks")((1,), (1,), (out,))
    assert out.item() == 1


@pytest.mark.parametrize(("dtype", "expected"), [("float32", [1.5, 0]), ("float64", [1.5, 0])])
def test_the_header_of_cupy_has_traits_and_limits(dtype: str, expected: list[float], xp: Any) -> None:
    finite = xp.ElementwiseKernel(
        "T x",
        "T y",
        "y = finite_or_zero(x)",
        "finite",
        preamble="""
        #include <cupy/cuda_workaround.h>
        template <class T>
        __device__ typename std::enable_if<std::is_floating_point<T>::value, T>::type finite_or_zero(T x) {
            return x <= std::numeric_limits<T>::max() ? x : T(0);
        }
        """,
    )
    assert finite(xp.asarray([1.5, np.inf], dtype=dtype)).get().tolist() == expected
