"""Reads of shared memory that no thread of the block has written.

After the tiles and histograms of the CUDA samples.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = t < n ? x[t] : 0;  // instead: if (t < n) part[t] = x[t];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];  // at
        __syncthreads();
    }
    if (t == 0) y[0] = part[0];
}
""")
def the_rest_of_a_block() -> Launch:
    x = numbers(50)
    return Launch(1, 64, x, Out([x.sum()]), 50)


@program(r"""
__global__ void KERNEL(const int* x, int* counts) {
    __shared__ int bins[16];
    int t = threadIdx.x;
    if (t < 16) bins[t] = 0;  // instead: ;
    __syncthreads();
    atomicAdd(&bins[x[t] % 16], 1);  // at
    __syncthreads();
    if (t < 16) counts[t] = bins[t];
}
""")
def bins_without_zeros() -> Launch:
    x = numbers(128)
    return Launch(1, 128, x, Out(np.bincount(x % 16, minlength=16)))


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float halo[66];
    int t = threadIdx.x;
    halo[t + 1] = x[t];
    if (t < 2) halo[65 * t] = 0;  // instead: if (t == 0) halo[t] = 0;
    __syncthreads();
    y[t] = halo[t] + halo[t + 2];  // at
}
""")
def a_halo_cell_of_a_tile() -> Launch:
    x = numbers(64, np.float32)
    padded = np.pad(x, 1)
    return Launch(1, 64, x, Out(padded[:-2] + padded[2:]))


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    extern __shared__ float row[];
    int t = threadIdx.x;
    row[t] = x[t];
    if (t == 0) row[64] = 0;  // instead: ;
    __syncthreads();
    y[t] = row[t + 1] - row[t];  // at
}
""")
def a_last_element_in_dynamic_memory() -> Launch:
    x = numbers(64, np.float32)
    return Launch(1, 64, x, Out(np.diff(x, append=np.float32(0))), shared=65 * 4)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int sums[2];
    int t = threadIdx.x;
    int sum = __reduce_add_sync(0xffffffff, x[t]);
    if (t % 32 == 0) sums[t / 32] = sum;  // instead: if (t == 0) sums[t / 32] = sum;
    __syncthreads();
    if (t == 0) y[0] = sums[0] + sums[1];  // at
}
""")
def the_sum_of_one_warp() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float tile[2][32];
    int t = threadIdx.x;
    float sum = 0;
    tile[0][t] = x[t];
    for (int step = 0; step < 4; step++) {
        int next = step + 1;
        if (next < 4)  // instead: if (next > 1 && next < 4)
            tile[next % 2][t] = x[32 * next + t];
        __syncthreads();
        sum += tile[step % 2][31 - t];  // at
        __syncthreads();
    }
    y[t] = sum;
}
""")
def two_tiles() -> Launch:
    x = numbers(128, np.float32)
    return Launch(1, 32, x, Out(x.reshape(4, 32).sum(0)[::-1].copy()))


@program(r"""
__global__ void KERNEL(int* y) {
    __shared__ int ready;
    if (threadIdx.x == 0) ready = 1;  // instead: if (threadIdx.x == 32) ready = 1;
    __syncthreads();
    y[threadIdx.x] = ready;  // at
}
""")
def a_flag_of_a_missing_thread() -> Launch:
    return Launch(1, 32, Out(np.ones(32, np.int32)))
