"""Reads of global memory that nothing has written since the memory was allocated.

After the example of the tool initcheck in NVIDIA, "Compute Sanitizer", and the accumulators, halos and work lists of
the CUDA samples.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Empty, Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    int i = threadIdx.x;
    y[i] = x[i];  // at instead: y[i] += x[i];
}
""")
def sum_without_a_beginning() -> Launch:
    x = numbers(64, np.float32)
    return Launch(1, 64, x, Out(x, Empty(64, dtype=np.float32)))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int known) {
    int i = threadIdx.x;
    y[i] = i < known ? x[i] : 0;  // at instead: y[i] = x[i];
}
""")
def only_the_first_part_was_filled() -> Launch:
    return Launch(1, 64, Empty(64, numbers(40)), Out(np.append(numbers(40), np.zeros(24, np.int32))), 40)


@program(r"""
__global__ void KERNEL(int* count, int* y) {
    if (threadIdx.x == 0) *count = 0;  // instead: ;
    __syncthreads();
    int place = atomicAdd(count, 1);  // at
    y[place] = 1;
}
""")
def counter_without_a_zero() -> Launch:
    return Launch(1, 32, Empty(1), Out(np.ones(32, np.int32)))


@program(r"""
__global__ void KERNEL(const float* x, float* padded, float* y) {
    int i = threadIdx.x;
    padded[i + 1] = x[i];
    if (i == 0) padded[0] = padded[65] = 0;  // instead: if (i == 0) padded[0] = 0;
    __syncthreads();
    y[i] = padded[i] + padded[i + 2];  // at
}
""")
def a_halo_cell_that_is_never_set() -> Launch:
    x = numbers(64, np.float32)
    padded = np.pad(x, 1)
    return Launch(1, 64, x, Empty(66, dtype=np.float32), Out(padded[:-2] + padded[2:]))


@program(r"""
__global__ void KERNEL(const float* x, float* y, int width, int pitch) {
    int row = threadIdx.y, column = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < width; i++)  // instead: for (int i = 0; i < pitch; i++)
        sum += x[row * pitch + i];  // at
    if (column == 0) y[row] = sum;
}
""")
def the_padding_of_a_row() -> Launch:
    x = numbers(14, np.float32)
    return Launch(1, (4, 1), Empty(16, x, np.float32), Out([x.sum()]), 14, 16)


@program(r"""
__global__ void KERNEL(int* flags, int* y) {
    int i = threadIdx.x;
    flags[i] = i % 3 == 0;  // instead: if (i % 3 == 0) flags[i] = 1;
    __syncthreads();
    y[i] = flags[31 - i];  // at
}
""")
def flags_that_only_some_threads_set() -> Launch:
    i = np.arange(32)
    return Launch(1, 32, Empty(32), Out(((31 - i) % 3 == 0).astype(np.int32)))


@program(r"""
__global__ void KERNEL(const int* x, unsigned short* halves, unsigned* y) {
    int i = threadIdx.x;
    halves[2 * i] = x[i];
    halves[2 * i + 1] = 0;  // instead: ;
    __syncthreads();
    y[i] = ((const unsigned*)halves)[i];  // at
}
""")
def half_of_a_number() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Empty(64, dtype=np.uint16), Out(x.astype(np.uint32)))


@program(r"""
__global__ void KERNEL(const int* x, int* sums, int* y, int n) {
    int t = threadIdx.x;
    sums[t] = x[t];
    __syncthreads();
    for (int i = 1; t == 0 && i < n; i++)  // instead: for (int i = 1; t == 0 && i <= n; i++)
        sums[i] += sums[i - 1];  // at
    __syncthreads();
    y[t] = sums[t];
}
""")
def a_running_sum_too_far() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Empty(33), Out(x.cumsum()), 32)


@program(r"""
__global__ void KERNEL(const int* x, int* queue, int* size, int* y) {
    int i = threadIdx.x;
    if (x[i] > 50) queue[atomicAdd(size, 1)] = i;
    __syncthreads();
    int count = *size;
    y[i] = i < count ? queue[i] >= 0 : 0;  // at instead: y[i] = i <= count ? queue[i] >= 0 : 0;
}
""")
def behind_the_end_of_a_queue() -> Launch:
    x = numbers(64)
    count = int((x > 50).sum())
    return Launch(1, 64, x, Empty(64), np.zeros(1, np.int32), Out((np.arange(64) < count).astype(np.int32)))


@program(r"""
__global__ void KERNEL(const int* x, int* best, int* y) {
    if (threadIdx.x == 0) *best = 0;  // instead: ;
    __syncthreads();
    atomicMax(best, x[threadIdx.x]);  // at
    __syncthreads();
    y[threadIdx.x] = *best;
}
""")
def a_maximum_without_a_beginning() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Empty(1), Out(np.full(32, x.max())))


@program(r"""
__global__ void KERNEL(const float* x, float* buffers, float* y, int steps) {
    int i = threadIdx.x;
    buffers[i] = x[i];
    for (int step = 0; step < steps; step++) {
        __syncthreads();
        const float* from = buffers + step % 2 * 32;  // instead: const float* from = buffers + (step + 1) % 2 * 32;
        float* to = buffers + (step + 1) % 2 * 32;
        float value = from[i] + from[(i + 1) % 32];  // at
        __syncthreads();
        to[i] = value;
    }
    y[i] = buffers[steps % 2 * 32 + i];
}
""")
def the_wrong_one_of_two_buffers() -> Launch:
    x = numbers(32, np.float32)
    once = x + np.roll(x, -1)
    return Launch(1, 32, x, Empty(64, dtype=np.float32), Out(once + np.roll(once, -1)), 2)
