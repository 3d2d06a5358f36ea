"""Accesses to shared memory outside of a variable, and outside of the dynamic shared memory of a launch.

After the tiles of M. Harris, "An Efficient Matrix Transpose in CUDA C/C++" (2013), and the halos of P. Micikevicius,
"3D Finite Difference Computation on GPUs using CUDA" (2009).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int tile[64];
    __shared__ int other[64];
    int t = threadIdx.x;
    other[t] = 1;
    tile[t] = x[t];
    __syncthreads();
    int next = t + 1 < 64 ? tile[t + 1] : 0;  // at instead: int next = tile[t + 1];
    y[t] = tile[t] + next + other[t];
}
""")
def read_behind_a_variable() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x + np.append(x[1:], 0) + 1))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int tile[64];
    __shared__ int other[64];
    int t = threadIdx.x;
    other[t] = 0;
    __syncthreads();
    tile[63 - t] = x[t];  // at instead: tile[64 - t] = x[t];
    __syncthreads();
    y[t] = tile[t] + other[t];
}
""")
def write_behind_a_variable() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1].copy()))


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float first[32];
    __shared__ float second[32];
    int t = threadIdx.x;
    first[t] = 0;
    second[t] = x[t];
    __syncthreads();
    float before = t > 0 ? second[t - 1] : 0;  // at instead: float before = second[t - 1];
    y[t] = second[t] - before + first[t];
}
""")
def read_before_a_variable() -> Launch:
    x = numbers(32, np.float32)
    return Launch(1, 32, x, Out(np.diff(x, prepend=np.float32(0))))


@program(r"""
__global__ void KERNEL(const float* x, float* y, int n) {
    extern __shared__ float halo[];
    int t = threadIdx.x;
    halo[t + 1] = x[t];
    if (t == 0) halo[0] = 0;
    if (t == n - 1) halo[n + 1] = 0;  // at instead: if (t == n - 1) halo[n + 2] = 0;
    __syncthreads();
    y[t] = halo[t] + halo[t + 1] + (t + 1 < n ? halo[t + 2] : 0);
}
""")
def halo_in_dynamic_memory() -> Launch:
    x = numbers(64, np.float32)
    padded = np.pad(x, 1)
    return Launch(1, 64, x, Out(padded[:-2] + x + padded[2:]), 64, shared=66 * 4)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int tile[16][17];
    int row = threadIdx.y, column = threadIdx.x;
    tile[row][column] = x[row * 16 + column];
    __syncthreads();
    y[row * 16 + column] = tile[column][row];  // at instead: y[row * 16 + column] = tile[column + 1][row];
}
""")
def a_row_behind_a_tile() -> Launch:
    x = numbers(256).reshape(16, 16)
    return Launch(1, (16, 16), x, Out(x.T.copy()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {  // instead: for (int step = 64; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];  // at
        __syncthreads();
    }
    if (t == 0) y[0] = part[0];
}
""")
def a_first_step_too_wide() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* counts) {
    __shared__ int bins[16];
    int t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[x[t] % 16], 1);  // at instead: atomicAdd(&bins[x[t] % 17], 1);
    __syncthreads();
    if (t < 16) counts[t] = bins[t];
}
""")
def a_bin_behind_the_last() -> Launch:
    x = numbers(128)
    return Launch(1, 128, x, Out(np.bincount(x % 16, minlength=16)))
