"""Reads of structures of which nothing has written a field, beside copies of structures whose padding nobody writes.

After the particles and records of arrays of structures in the CUDA samples.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Empty, Launch, Out, numbers, program


@program(r"""
struct KERNEL_record { int key; float value; };
__global__ void KERNEL(const float* x, KERNEL_record* records, float* y) {
    int i = threadIdx.x;
    records[i].key = i;
    records[i].value = x[i];  // instead: ;
    __syncthreads();
    y[i] = records[31 - i].value;  // at
}
""")
def a_field_that_is_never_set() -> Launch:
    x = numbers(32, np.float32)
    return Launch(1, 32, x, Empty(64), Out(x[::-1].copy()))


@program(r"""
struct KERNEL_record { char kind; double value; };
__global__ void KERNEL(const double* x, KERNEL_record* records, KERNEL_record* copies, double* y, int n) {
    int i = threadIdx.x;
    if (i < n) {  // instead: if (i < n - 1) {
        records[i].kind = 1;
        records[i].value = x[i];
    }
    __syncthreads();
    copies[i] = records[n - 1 - i];  // at
    y[i] = copies[i].value;
}
""")
def a_structure_that_is_copied() -> Launch:
    x = numbers(16, np.float64)
    records = Empty(32, dtype=np.float64)
    return Launch(1, 16, x, records, Empty(32, dtype=np.float64), Out(x[::-1].copy()), 16)


@program(r"""
struct KERNEL_pair { int key; short kind; };
__global__ void KERNEL(const int* x, KERNEL_pair* pairs, int* y) {
    int i = threadIdx.x;
    pairs[i].key = x[i];
    pairs[i].kind = i % 3;
    __syncthreads();
    for (int step = 0; step < 16; step++) {
        int left = 2 * i + step % 2, right = left + 1;
        if (right < 16) {  // instead: if (right <= 16) {
            KERNEL_pair a = pairs[left], b = pairs[right];  // at
            if (b.key < a.key) pairs[left] = b, pairs[right] = a;
        }
        __syncthreads();
    }
    y[i] = pairs[i].key;
}
""")
def sorted_pairs() -> Launch:
    x = numbers(16)
    return Launch(1, 16, x, Empty(36), Out(np.sort(x)))
