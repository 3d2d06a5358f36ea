"""Barriers of the whole grid: of cooperative groups, and of atomic functions and fences.

After the chapter on cooperative groups of the CUDA C++ Programming Guide, and Xiao and Feng, "Inter-block GPU
communication via fast barrier synchronization", 2010.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* part, int* y) {
    namespace cg = cooperative_groups;
    cg::grid_group grid = cg::this_grid();
    int i = grid.thread_rank(), all = grid.size();
    part[i] = x[i] * 2;  // A
    grid.sync();  // instead: __syncthreads();
    y[i] = part[all - 1 - i];  // B
}
""")
def reversal_of_a_grid() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, np.zeros(256, np.int32), Out(2 * x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    namespace cg = cooperative_groups;
    cg::grid_group grid = cg::this_grid();
    int b = blockIdx.x, t = threadIdx.x;
    __shared__ int part[32];
    part[t] = x[b * 32 + t];
    __syncthreads();
    if (t == 0) {
        int sum = 0;
        for (int i = 0; i < 32; i++) sum += part[i];
        sums[b] = sum;  // A
    }
    for (int half = gridDim.x / 2; half > 0; half /= 2) {
        grid.sync();  // instead: ;
        if (b < half && t == 0) sums[b] += sums[b + half];  // B
    }
}
""")
def levels_of_blocks() -> Launch:
    x = numbers(256)
    sums = x.reshape(8, 32).sum(1)
    for half in (4, 2, 1):
        sums[:half] += sums[half : 2 * half]
    return Launch(8, 32, x, Out(sums))


@program(r"""
__device__ void KERNEL_meet(unsigned int* count) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();  // missing fence (before): ;
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
}
__global__ void KERNEL(const int* x, int* part, unsigned int* count, int* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    part[i] = x[i] + 1;  // A
    KERNEL_meet(count);  // instead (meeting): __syncthreads();
    y[i] = part[all - 1 - i];  // B
}
""")
def barrier_of_atomic_functions() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, np.zeros(256, np.int32), np.zeros(1, np.uint32), Out(x[::-1] + 1))


@program(r"""
__global__ void KERNEL(const int* x, int* part, unsigned int* count, int* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    part[i] = x[i] + 1;  // A
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(*count);
        arrived.fetch_add(1, cuda::memory_order_release);
        // missing fence: arrived.fetch_add(1, cuda::memory_order_relaxed);
        while (arrived.load(cuda::memory_order_acquire) < gridDim.x) {}
    }
    __syncthreads();
    y[i] = part[all - 1 - i];  // B
}
""")
def barrier_of_an_atomic_object() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, np.zeros(256, np.int32), np.zeros(1, np.uint32), Out(x[::-1] + 1))
