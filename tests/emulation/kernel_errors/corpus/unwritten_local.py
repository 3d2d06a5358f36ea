"""Reads of variables and of arrays in local memory that the thread has not written.

After the small kernels with branches in the CUDA samples.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int sum = 0;  // instead: int sum;
    for (int i = 0; i < n; i++) sum += x[threadIdx.x * n + i];  // at
    y[threadIdx.x] = sum;
}
""")
def a_sum_without_a_beginning() -> Launch:
    x = numbers(32 * 4)
    return Launch(1, 32, x, Out(x.reshape(32, 4).sum(1)), 4)


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    float value = x[threadIdx.x], result;
    if (value > 50) result = 1;
    else result = -1;  // instead: ;
    y[threadIdx.x] = result;  // at
}
""")
def one_branch_sets_a_variable() -> Launch:
    x = numbers(64, np.float32)
    return Launch(1, 64, x, Out(np.where(x > 50, 1, -1).astype(np.float32)))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int counts[8];
    for (int i = 0; i < 8; i++) counts[i] = 0;  // instead: for (int i = 0; i < n % 8; i++) counts[i] = 0;
    for (int i = 0; i < n; i++) counts[x[threadIdx.x * n + i] % 8]++;  // at
    int most = 0;
    for (int i = 0; i < 8; i++) most = max(most, counts[i]);
    y[threadIdx.x] = most;
}
""")
def counts_without_zeros() -> Launch:
    x = numbers(32 * 12).reshape(32, 12)
    most = [np.bincount(row % 8).max() for row in x]
    return Launch(1, 32, x, Out(most), 12)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int found;
    found = -1;  // instead: ;
    for (int i = 0; i < n; i++)
        if (x[i] == (int)threadIdx.x) found = i;
    y[threadIdx.x] = found;  // at
}
""")
def a_search_that_finds_nothing() -> Launch:
    x = numbers(16)
    expected = [int(np.flatnonzero(x == each)[-1]) if (x == each).any() else -1 for each in range(32)]
    return Launch(1, 32, x, Out(expected), 16)
