"""Accesses to global memory outside of the arrays of a launch.

After the sections on bounds in S. Cook, "CUDA Programming" (2013), the loops over sparse matrices of N. Bell and
M. Garland, "Efficient Sparse Matrix-Vector Multiplication on CUDA" (2008), and the transposes of M. Harris, "An
Efficient Matrix Transpose in CUDA C/C++" (2013).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)  // instead: if (i <= n)
        y[i] = 2 * x[i];  // at
}
""")
def one_element_too_far() -> Launch:
    x = numbers(100)
    return Launch(2, 64, x, Out(2 * x), 100)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;  // instead: ;
    y[i] = x[i] + 1;  // at
}
""")
def last_block_without_a_guard() -> Launch:
    x = numbers(70)
    return Launch(2, 64, x, Out(x + 1), 70)


@program(r"""
__global__ void KERNEL(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float before = i > 0 ? x[i - 1] : 0;  // at instead: float before = x[i - 1];
    y[i] = x[i] - before;
}
""")
def element_before_the_first() -> Launch:
    x = numbers(64, np.float32)
    return Launch(1, 64, x, Out(np.diff(x, prepend=np.float32(0))), 64)


@program(r"""
__global__ void KERNEL(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float after = i + 1 < n ? x[i + 1] : 0;  // at instead: float after = i < n ? x[i + 1] : 0;
    y[i] = x[i] + after;
}
""")
def halo_behind_the_last() -> Launch:
    x = numbers(64, np.float32)
    return Launch(1, 64, x, Out(x + np.append(x[1:], np.float32(0))), 64)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns)  // instead: if (row <= rows && column < columns)
        y[column * rows + row] = x[row * columns + column];  // at
}
""")
def a_row_too_many() -> Launch:
    x = numbers(15 * 20).reshape(15, 20)
    return Launch((2, 1), (16, 16), x, Out(x.T.copy()), 15, 20)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int rows, int columns) {
    int row = threadIdx.y, column = threadIdx.x;
    int place = column * rows + row;  // instead: int place = column + row * rows;
    y[place] = x[row * columns + column];  // at
}
""")
def rows_of_a_wrong_length() -> Launch:
    x = numbers(16 * 8).reshape(16, 8)
    return Launch(1, (8, 16), x, Out(x.T.copy()), 16, 8)


@program(r"""
__global__ void KERNEL(const int* x, int* counts, int n, int bins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[x[i] % bins], 1);  // at instead: atomicAdd(&counts[x[i]], 1);
}
""")
def a_bin_beyond_the_last() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(np.bincount(x % 10, minlength=10)), 128, 10)


@program(r"""
__global__ void KERNEL(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;  // instead: if (row > rows) return;
    float sum = 0;
    for (int place = starts[row]; place < starts[row + 1]; place++)  // at
        sum += values[place] * x[columns[place]];
    y[row] = sum;
}
""")
def a_row_of_a_sparse_matrix() -> Launch:
    starts = np.arange(0, 3 * 33, 3)
    columns = numbers(96) % 32
    values, x = numbers(96, np.float32), numbers(32, np.float32)
    expected = (values * x[columns]).reshape(32, 3).sum(1)
    return Launch(1, 64, starts.astype(np.int32), columns, values, x, Out(expected), 32)


@program(r"""
__global__ void KERNEL(const int* places, const int* x, int* y, int n) {
    int i = threadIdx.x;
    int place = places[i];
    y[i] = place >= 0 ? x[place] : -1;  // at instead: y[i] = x[place];
}
""")
def a_place_that_says_nothing() -> Launch:
    places = np.where(np.arange(32) % 5 == 0, -1, np.arange(32)).astype(np.int32)
    x = numbers(32)
    return Launch(1, 32, places, x, Out(np.where(places >= 0, x, -1)), 32)


@program(r"""
__global__ void KERNEL(const float4* x, float4* y, int vectors) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors)  // instead: if (i < vectors * 4)
        y[i] = x[i];  // at
}
""")
def numbers_counted_as_vectors() -> Launch:
    x = numbers(64, np.float32)
    return Launch(1, 64, x, Out(x), 16)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (; i < n; i += step)  // instead: for (; i < n + step; i += step)
        atomicAdd(&y[0], x[i]);  // at
}
""")
def a_step_too_far() -> Launch:
    x = numbers(130)
    return Launch(2, 32, x, Out([x.sum()]), 130)


@program(r"""
__global__ void KERNEL(const double* x, double* sums, int n) {
    int i = 2 * threadIdx.x;
    double right = i + 1 < n ? x[i + 1] : 0;  // at instead: double right = x[i + 1];
    sums[threadIdx.x] = x[i] + right;
}
""")
def a_pair_without_a_second() -> Launch:
    x = numbers(63, np.float64)
    return Launch(1, 32, x, Out(np.append(x, 0).reshape(32, 2).sum(1)), 63)


@program(r"""
struct KERNEL_particle { float place[3]; int kind; };
__global__ void KERNEL(const KERNEL_particle* x, float* y, int n) {
    int i = threadIdx.x;
    if (i < n)  // instead: if (i < 2 * n)
        y[i] = x[i].place[0] + x[i].place[1] + x[i].place[2];  // at
}
""")
def a_structure_too_far() -> Launch:
    x = numbers(4 * 20, np.float32)
    return Launch(1, 40, x, Out(x.reshape(20, 4)[:, :3].sum(1)), 20)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    const int* last = x + n - 1;  // instead: const int* last = x + n;
    int i = threadIdx.x;
    y[i] = *(last - i);  // at
}
""")
def reversed_from_the_end() -> Launch:
    x = numbers(48)
    return Launch(1, 48, x, Out(x[::-1].copy()), 48)


@program(r"""
__global__ void KERNEL(const char* text, int* lengths, int n) {
    int begin = 8 * threadIdx.x, length = 0;
    while (length < 8 && text[begin + length] != 0)  // at instead: while (text[begin + length] != 0)
        length++;
    lengths[threadIdx.x] = length;
}
""")
def a_text_without_an_end() -> Launch:
    text = np.full((4, 8), ord("x"), np.int8)
    text[0, 3:] = text[1, 5:] = 0
    text[2, 7] = 0
    return Launch(1, 4, text, Out(np.asarray([3, 5, 7, 8])), 32)
