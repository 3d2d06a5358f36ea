"""Complete programs in CUDA C++: the same source on both runtimes, against NumPy."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import tcuda

pytestmark = [
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
    pytest.mark.usefixtures("runtime"),
]

MATMUL = r"""
#define TILE 16
// c = a @ b, where a has m rows, b has n columns, and k is the length of the sums.
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        const int x = start + threadIdx.x, y = start + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && x < k ? a[row * k + x] : 0;
        right[threadIdx.y][threadIdx.x] = y < k && column < n ? b[y * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
"""

# Each thread computes 4 x 4 numbers of a tile of 64 x 64. The slabs of both factors take 64 KiB of shared memory.
WIDE_MATMUL = r"""
constexpr int tile = 64, slab = 128, side = 16, each = tile / side;
extern __shared__ float slabs[];
extern "C" __global__ void matmul(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
    float* left = slabs;                // [tile][slab]
    float* right = slabs + tile * slab; // [slab][tile]
    const int thread = threadIdx.y * side + threadIdx.x;
    const int row = blockIdx.y * tile, column = blockIdx.x * tile;
    float sums[each][each] = {};
    for (int start = 0; start < n; start += slab) {
        for (int i = thread; i < tile * slab; i += side * side) {
            left[i] = a[(row + i / slab) * n + start + i % slab];
            right[i] = b[(start + i / tile) * n + column + i % tile];
        }
        __syncthreads();
        for (int i = 0; i < slab; ++i)
            for (int y = 0; y < each; ++y)
                for (int x = 0; x < each; ++x)
                    sums[y][x] += left[(threadIdx.y + y * side) * slab + i] * right[i * tile + threadIdx.x + x * side];
        __syncthreads();
    }
    for (int y = 0; y < each; ++y)
        for (int x = 0; x < each; ++x)
            c[(row + threadIdx.y + y * side) * n + column + threadIdx.x + x * side] = sums[y][x];
}
"""

SUM = r"""
__device__ double sum_of_warp(double value) {
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffff, value, distance);
    return value; // in lane 0
}

// Writes the sum of each block's share of x.
extern "C" __global__ void block_sums(const double* x, double* sums, int n) {
    __shared__ double of_warp[32];
    double value = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        value += x[i];
    const int warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
    value = sum_of_warp(value);
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = sum_of_warp(lane < blockDim.x / warpSize ? of_warp[lane] : 0);
        if (lane == 0)
            sums[blockIdx.x] = value;
    }
}
"""

HISTOGRAM = r"""
extern "C" __global__ void histogram(const unsigned char* x, int n, unsigned* counts) {
    __shared__ unsigned of_block[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        of_block[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&of_block[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (of_block[i] != 0)
            atomicAdd(&counts[i], of_block[i]);
}
"""

# A step of the heat equation. The border of the plate keeps its heat.
HEAT = r"""
#define WIDTH 16
extern "C" __global__ void step(const float* before, float* after, int rows, int columns, float rate) {
    __shared__ float tile[WIDTH + 2][WIDTH + 2];
    const int column = blockIdx.x * WIDTH + threadIdx.x, row = blockIdx.y * WIDTH + threadIdx.y;
    const int x = threadIdx.x + 1, y = threadIdx.y + 1;
    const bool inside = row < rows && column < columns;
    const bool border = row == 0 || column == 0 || row == rows - 1 || column == columns - 1;
    if (inside) {
        const float* here = before + row * columns + column;
        tile[y][x] = *here;
        if (x == 1 && column > 0)
            tile[y][0] = here[-1];
        if (x == WIDTH && column < columns - 1)
            tile[y][WIDTH + 1] = here[1];
        if (y == 1 && row > 0)
            tile[0][x] = here[-columns];
        if (y == WIDTH && row < rows - 1)
            tile[WIDTH + 1][x] = here[columns];
    }
    __syncthreads();
    if (inside) {
        const float middle = tile[y][x];
        float change = 0;
        if (!border) // the tile has no halo beyond the plate
            change = tile[y][x - 1] + tile[y][x + 1] + tile[y - 1][x] + tile[y + 1][x] - 4 * middle;
        after[row * columns + column] = middle + rate * change;
    }
}
"""

SCAN = r"""
extern "C" {
// Replaces each block's share of x by its running sum, and writes the sum of the share.
__global__ void scan_blocks(int* x, int n, int* sums) {
    extern __shared__ int running[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, last = blockDim.x - 1;
    running[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int distance = 1; distance < blockDim.x; distance *= 2) {
        const int before = threadIdx.x >= distance ? running[threadIdx.x - distance] : 0;
        __syncthreads();
        running[threadIdx.x] += before;
        __syncthreads();
    }
    if (i < n)
        x[i] = running[threadIdx.x];
    if (threadIdx.x == last)
        sums[blockIdx.x] = running[last];
}

__global__ void add_sums(int* x, int n, const int* sums) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && blockIdx.x > 0)
        x[i] += sums[blockIdx.x - 1];
}
}
"""

TRANSPOSE = r"""
extern "C" __global__ void transpose(const short* x, short* y, int rows, int columns) {
    __shared__ short tile[32][33]; // The last column keeps the threads of a warp in different banks of the memory.
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += blockDim.y)
        if (column < columns && row + i < rows)
            tile[threadIdx.y + i][threadIdx.x] = x[(row + i) * columns + column];
    __syncthreads();
    const int to_column = blockIdx.y * 32 + threadIdx.x, to_row = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += blockDim.y)
        if (to_column < rows && to_row + i < columns)
            y[(to_row + i) * rows + to_column] = tile[threadIdx.x][threadIdx.y + i];
}
"""

# A block has as many warps as it has threads along the second axis. Each warp computes one number.
MATVEC = r"""
extern "C" __global__ void matvec(const float* matrix, const float* vector, float* result, int rows, int columns) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += warpSize)
        sum += matrix[row * columns + i] * __ldg(&vector[i]);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, lanes);
    if (threadIdx.x == 0)
        result[row] = sum;
}
"""

SOFTMAX = r"""
struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

// Combines the values of all threads of a block of up to 32 whole warps; every thread gets the result.
template <typename Combine> __device__ float over_block(float value, Combine combine, float* of_warp) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffff, value, lanes));
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp)
        value = combine(value, of_warp[warp]);
    __syncthreads();
    return value;
}

// A block for each row.
extern "C" __global__ void __launch_bounds__(128) softmax(const float* scores, float* result, int columns) {
    __shared__ float of_warp[32];
    scores += blockIdx.x * columns;
    result += blockIdx.x * columns;
    float largest = -3.4e38f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        largest = fmaxf(largest, scores[i]);
    largest = over_block(largest, Max(), of_warp);
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += result[i] = expf(scores[i] - largest);
    sum = over_block(sum, Sum(), of_warp);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        result[i] /= sum;
}
"""

MAP = r"""
namespace functions {
template <typename T> struct Square {
    __device__ T operator()(T x) const { return x * x; }
};
template <typename T> struct Clip {
    __device__ T operator()(T x) const { return x < T(-1) ? T(-1) : x > T(1) ? T(1) : x; }
};
}

template <typename T, template <typename> class Function, int each>
__global__ void map(const T* x, T* y, long long n) {
    const Function<T> function;
    const long long first = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * each;
#pragma unroll
    for (int i = 0; i < each; ++i)
        if (first + i < n)
            y[first + i] = function(x[first + i]);
}
"""

CONVOLUTION = r"""
constexpr int radius = 3;
__constant__ float weights[2 * radius + 1];
extern "C" __global__ void convolve(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int offset = -radius; offset <= radius; ++offset)
        if (i + offset >= 0 && i + offset < n)
            sum += weights[radius + offset] * x[i + offset];
    y[i] = sum;
}
"""

BODIES = r"""
struct Force {
    float constant;
    double3 center;
    unsigned char axes[3]; // the axes along which the force acts
    int power;
};
extern "C" __global__ void push(double3* velocities, const double3* places, int n, Force force, float seconds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const double3 c = force.center, p = places[i];
    const double x = c.x - p.x, y = c.y - p.y, z = c.z - p.z;
    double factor = force.constant * seconds;
    for (int power = 0; power < force.power; ++power)
        factor /= sqrt(x * x + y * y + z * z);
    double3& velocity = velocities[i];
    velocity.x += force.axes[0] ? factor * x : 0;
    velocity.y += force.axes[1] ? factor * y : 0;
    velocity.z += force.axes[2] ? factor * z : 0;
}
"""


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def blocks(count: int, each: int) -> int:
    """Return the number of blocks of ``each`` that ``count`` needs."""
    return -(-count // each)


# Products


@pytest.mark.parametrize(("m", "n", "k"), [(256, 256, 256), (33, 50, 17)])
def test_tiled_product_in_static_shared_memory(m: int, n: int, k: int, xp: Any) -> None:
    matmul = xp.RawKernel(MATMUL, "matmul")
    a, b, c = normal(m, k), normal(k, n, seed=1), xp.full((m, n), np.nan, xp.float32)
    sizes = np.int32(m), np.int32(n), np.int32(k)
    matmul((blocks(n, 16), blocks(m, 16)), (16, 16), (xp.array(a), xp.array(b), c, *sizes))
    np.testing.assert_allclose(c.get(), a @ b, rtol=1e-4, atol=1e-4)


def test_tiled_product_of_a_compiled_kernel(xp: Any) -> None:
    matmul = tcuda._compile_kernel(MATMUL, "matmul")
    a, b, c = normal(90, 100), normal(100, 70, seed=1), xp.full((90, 70), np.nan, xp.float32)
    matmul((5, 6), (16, 16), (xp.array(a), xp.array(b), c, 90, 70, 100))
    np.testing.assert_allclose(c.get(), a @ b, rtol=1e-4, atol=1e-4)


def test_tiled_product_in_more_dynamic_shared_memory_than_a_launch_has_by_default(xp: Any) -> None:
    bytes, n = 2 * 64 * 128 * 4, 256
    matmul = xp.RawKernel(WIDE_MATMUL, "matmul")
    matmul.max_dynamic_shared_size_bytes = bytes
    a, b, c = normal(n, n), normal(n, n, seed=1), xp.full((n, n), np.nan, xp.float32)
    matmul((n // 64, n // 64), (16, 16), (xp.array(a), xp.array(b), c, np.int32(n)), shared_mem=bytes)
    np.testing.assert_allclose(c.get(), a @ b, rtol=1e-4, atol=1e-4)


def test_product_with_a_vector_by_a_warp_for_each_row(xp: Any) -> None:
    rows, columns = 101, 333
    matrix, vector, result = normal(rows, columns), normal(columns, seed=1), xp.full(rows, np.nan, xp.float32)
    matvec = xp.RawKernel(MATVEC, "matvec")
    arrays = xp.array(matrix), xp.array(vector), result
    matvec((blocks(rows, 4),), (32, 4), (*arrays, np.int32(rows), np.int32(columns)))
    np.testing.assert_allclose(result.get(), matrix @ vector, rtol=1e-4, atol=1e-4)


# Sums and counts


def test_reduction_with_shuffles_gives_a_number_for_each_block(xp: Any) -> None:
    n, grid, block = 10_000, 8, 256
    x = np.random.default_rng(0).integers(-1000, 1000, n).astype(np.float64)  # sums are exact in any order
    block_sums = xp.RawKernel(SUM, "block_sums")
    partial, total = xp.full(grid, np.nan), xp.full(1, np.nan)
    block_sums((grid,), (block,), (xp.array(x), partial, np.int32(n)))
    padded = np.pad(x, (0, -n % (grid * block))).reshape(-1, grid, block)
    np.testing.assert_array_equal(partial.get(), padded.sum(axis=(0, 2)))
    block_sums((1,), (32,), (partial, total, np.int32(grid)))
    assert total.item() == x.sum()


def test_histogram_with_shared_and_global_atomics(xp: Any) -> None:
    x = np.random.default_rng(0).binomial(255, 0.3, 50_000).astype(np.uint8)
    counts = xp.zeros(256, xp.uint32)
    xp.RawKernel(HISTOGRAM, "histogram")((6,), (128,), (xp.array(x), np.int32(x.size), counts))
    np.testing.assert_array_equal(counts.get(), np.bincount(x, minlength=256))


def scan(x: Any, kernels: Any, xp: Any, block: int = 128) -> None:
    """Replace ``x`` by its running sum; sums of blocks are scanned in the same way."""
    grid = blocks(x.size, block)
    sums = xp.empty(grid, xp.int32)
    kernels.get_function("scan_blocks")((grid,), (block,), (x, np.int32(x.size), sums), shared_mem=4 * block)
    if grid > 1:
        scan(sums, kernels, xp)
        kernels.get_function("add_sums")((grid,), (block,), (x, np.int32(x.size), sums))


@pytest.mark.parametrize("n", [1, 128, 129, 20_000])
def test_scan_of_blocks_and_of_their_sums(n: int, xp: Any) -> None:
    numbers = np.random.default_rng(0).integers(-100, 100, n).astype(np.int32)
    x = xp.array(numbers)
    scan(x, xp.RawModule(code=SCAN), xp)
    np.testing.assert_array_equal(x.get(), np.cumsum(numbers))


def test_softmax_of_rows(xp: Any) -> None:
    rows, columns = 40, 300
    scores = 50 * normal(rows, columns)
    result = xp.full((rows, columns), np.nan, xp.float32)
    xp.RawKernel(SOFTMAX, "softmax")((rows,), (128,), (xp.array(scores), result, np.int32(columns)))
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(result.get(), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-30)


# Neighbours


def heat_after(steps: int, plate: Any, rate: float) -> Any:
    """Return the heat of ``plate`` after some steps, computed by NumPy."""
    for _ in range(steps):
        around = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
        plate = plate.copy()
        plate[1:-1, 1:-1] += np.float32(rate) * (around - 4 * plate[1:-1, 1:-1])
    return plate


def test_stencil_with_a_halo_in_shared_memory(xp: Any) -> None:
    rows, columns, rate = 70, 50, 0.2
    plate = normal(rows, columns)
    step = xp.RawKernel(HEAT, "step")
    before, after = xp.array(plate), xp.full((rows, columns), np.nan, xp.float32)
    for _ in range(4):
        sizes = np.int32(rows), np.int32(columns), np.float32(rate)
        step((blocks(columns, 16), blocks(rows, 16)), (16, 16), (before, after, *sizes))
        before, after = after, before
    np.testing.assert_allclose(before.get(), heat_after(4, plate, rate), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(64, 96), (70, 45)])
def test_transpose_by_tiles(rows: int, columns: int, xp: Any) -> None:
    x = np.arange(rows * columns, dtype=np.int16).reshape(rows, columns)
    y = xp.full((columns, rows), -1, xp.int16)
    grid = blocks(columns, 32), blocks(rows, 32)
    xp.RawKernel(TRANSPOSE, "transpose")(grid, (32, 8), (xp.array(x), y, np.int32(rows), np.int32(columns)))
    np.testing.assert_array_equal(y.get(), x.T)


# Templates, constant memory, structs


@pytest.mark.parametrize(
    ("name", "dtype", "function"),
    [
        ("map<float, functions::Square, 4>", np.float32, np.square),
        ("map<double, functions::Clip, 1>", np.float64, lambda x: np.clip(x, -1, 1)),
        ("map<long long, functions::Square, 3>", np.int64, np.square),
    ],
)
def test_template_is_instantiated_for_types_functions_and_numbers(
    name: str, dtype: type, function: Any, xp: Any
) -> None:
    n, each = 1001, int(name.rstrip(">").split()[-1])
    names = [f"map<{type}, functions::Square, {count}>" for type, count in (("float", 4), ("long long", 3))]
    module = xp.RawModule(code=MAP, name_expressions=[*names, "map<double, functions::Clip, 1>"])
    x = (3 * normal(n)).astype(dtype)
    y = xp.zeros(n, dtype)
    module.get_function(name)((blocks(n, 64 * each),), (64,), (xp.array(x), y, n))
    np.testing.assert_array_equal(y.get(), function(x))


def test_convolution_with_weights_in_constant_memory(xp: Any) -> None:
    module = xp.RawModule(code=CONVOLUTION)
    weights = normal(7, seed=1)
    xp.ndarray((7,), xp.float32, module.get_global("weights")).set(weights)
    x = normal(500)
    y = xp.zeros(500, xp.float32)
    module.get_function("convolve")((4,), (128,), (xp.array(x), y, np.int32(500)))
    np.testing.assert_allclose(y.get(), np.convolve(x, weights[::-1], mode="same"), rtol=1e-4, atol=1e-5)


def test_struct_with_padding_is_a_parameter(xp: Any) -> None:
    layout = np.dtype(
        [("constant", np.float32), ("center", np.float64, 3), ("axes", np.uint8, 3), ("power", np.int32)], align=True
    )
    force = np.array((2, (1, -1, 0.5), (1, 0, 1), 3), layout)
    places, velocities = normal(100, 3).astype(np.float64), normal(100, 3, seed=1).astype(np.float64)
    pushed = xp.array(velocities)
    arguments = pushed, xp.array(places), np.int32(100), force, np.float32(0.5)
    xp.RawKernel(BODIES, "push")((2,), (64,), arguments)
    away = force["center"] - places
    change = away / np.linalg.norm(away, axis=1, keepdims=True) ** 3 * [1, 0, 1]
    np.testing.assert_allclose(pushed.get(), velocities + change, rtol=1e-9)


# Graphs


def test_steps_of_a_stencil_are_captured_and_replayed(xp: Any) -> None:
    rows, columns, rate = 40, 33, 0.1
    plate = normal(rows, columns)
    step = xp.RawKernel(HEAT, "step")
    step.compile()  # before the capture, which should record launches only
    first, second = xp.array(plate), xp.full((rows, columns), np.nan, xp.float32)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        for before, after in ((first, second), (second, first)):
            sizes = np.int32(rows), np.int32(columns), np.float32(rate)
            step((blocks(columns, 16), blocks(rows, 16)), (16, 16), (before, after, *sizes))
    np.testing.assert_array_equal(first.get(), plate)
    for _ in range(3):
        graph.replay()
    tcuda.synchronize()
    np.testing.assert_allclose(first.get(), heat_after(6, plate, rate), rtol=1e-4, atol=1e-5)


def test_replayed_reduction_reads_the_new_content_of_its_input(xp: Any) -> None:
    n = 3000
    block_sums = tcuda._compile_kernel(SUM, "block_sums")
    x, total = xp.zeros(n), xp.zeros(1)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        partial = xp.empty(4)  # in the pool of the graph
        block_sums((4,), (128,), (x, partial, n))
        block_sums((1,), (32,), (partial, total, 4))
    for factor in (1, -2):
        x.set(factor * np.arange(n, dtype=np.float64))
        graph.replay()
        tcuda.synchronize()
        assert total.item() == factor * n * (n - 1) / 2


def test_replayed_histogram_adds_to_its_counts(xp: Any) -> None:
    x = np.random.default_rng(0).integers(0, 256, 5000).astype(np.uint8)
    histogram = xp.RawKernel(HISTOGRAM, "histogram")
    histogram.compile()
    values, counts = xp.array(x), xp.zeros(256, xp.uint32)
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        histogram((3,), (64,), (values, np.int32(x.size), counts))
    for _ in range(3):
        graph.replay()
    tcuda.synchronize()
    np.testing.assert_array_equal(counts.get(), 3 * np.bincount(x, minlength=256))
