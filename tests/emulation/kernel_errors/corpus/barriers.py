"""Barriers that not all threads reach, and masks of warp functions that name other lanes.

After NVIDIA, "CUDA C++ Programming Guide", the sections on barriers and warp functions, and the example of the tool
synccheck in NVIDIA, "Compute Sanitizer".
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    tile[t] = 0;
    if (t < n) tile[t] = x[t];  // instead: if (t >= n) return; tile[t] = x[t];
    __syncthreads();  // at
    y[t] = tile[t];
}
""")
def threads_that_have_returned() -> Launch:
    x = numbers(48)
    return Launch(1, 64, x, Out(np.append(x, np.zeros(16, np.int32))), 48)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();  // at instead: if (t % 2 == 0) __syncthreads();
    y[t] = tile[t];
}
""")
def a_barrier_in_a_branch() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int sum[32];
    int t = threadIdx.x;
    sum[t] = 0;
    for (int i = 0; i < n; i++) {  // instead: for (int i = 0; i < n + t % 2; i++) {
        __syncthreads();  // at
        sum[t] += x[t];
    }
    y[t] = sum[t];
}
""")
def loops_of_several_lengths() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out(3 * x), 3)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    int t = threadIdx.x, value = x[t];
    if (t < 16) {
        value += __shfl_xor_sync(0xffff, value, 1);  // at instead: value += __shfl_xor_sync(0xffffffff, value, 1);
    }
    __syncthreads();
    y[t] = value;
}
""")
def a_mask_with_lanes_of_another_branch() -> Launch:
    x = numbers(32)
    pairs = x + x.reshape(-1, 2)[:, ::-1].ravel()
    return Launch(1, 32, x, Out(np.where(np.arange(32) < 16, pairs, x)))


@program(r"""
__global__ void KERNEL(int* y) {
    int t = threadIdx.x;
    unsigned mask = __ballot_sync(0xffffffff, t < 24);
    if (t < 24) {
        y[t] = __popc(mask);
        __syncwarp(mask);  // at instead: __syncwarp(mask >> 1);
    }
}
""")
def a_mask_without_the_own_lane() -> Launch:
    return Launch(1, 32, Out(np.where(np.arange(32) < 24, 24, 0)))
