"""Copies and fills of many bytes, by the functions of C and by the compiler's names for the same functions.

After the section on ``memcpy()`` and ``memset()`` of the CUDA C++ Programming Guide.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    int t = threadIdx.x;
    memcpy(y + 4 * t, x + 4 * t, 16);  // A B
    // instead: memcpy(y + 4 * t, x + 4 * t, 20);
}
""")
def rows() -> Launch:
    x = numbers(132)
    return Launch(1, 32, x, Out(np.append(x[:128], [0] * 4)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    int t = threadIdx.x;
    __builtin_memcpy(y + 2 * t, x + 2 * t, 8);  // A B
    // instead: __builtin_memcpy(y + 2 * t, x + 2 * t, 12);
}
""")
def rows_by_the_compiler() -> Launch:
    x = numbers(68)
    return Launch(1, 32, x, Out(np.append(x[:64], [0] * 4)))


@program(r"""
__global__ void KERNEL(int* y, int bytes) {
    int row = blockIdx.x * 16 + threadIdx.x;
    __builtin_memset(y + 4 * row, row, bytes);  // A B
    // instead: __builtin_memset(y + 3 * row, row, bytes);
}
""")
def filled_rows() -> Launch:
    return Launch(2, 16, Out(np.repeat(np.arange(32) * 0x01010101, 4)), 16)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int counts[4];
    int t = threadIdx.x;
    if (t == 0) __builtin_memset(counts, 0, sizeof counts);  // A
    __syncthreads();  // missing barrier: ;
    atomicAdd(&counts[x[t] & 3], 1);  // B
    __syncthreads();
    if (t < 4) y[t] = counts[t];
}
""")
def zeros_before_counts() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.bincount(x & 3, minlength=4)))


@program(r"""
struct KERNEL_row {
    int at[5];
};
__global__ void KERNEL(const int* x, int* y) {
    __shared__ KERNEL_row row[64];
    int t = threadIdx.x;
    for (int i = 0; i < 5; i++) row[t].at[i] = x[t] + i;
    __syncthreads();
    KERNEL_row next = row[(t + 1) % 64];  // A
    __syncthreads();  // missing barrier: ;
    __builtin_memcpy(&row[t], &next, sizeof next);  // B
    y[t] = row[t].at[4];
}
""")
def rows_that_move_up() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.roll(x, -1) + 4))
