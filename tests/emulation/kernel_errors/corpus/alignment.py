"""Addresses that are no multiples of the size of the access.

After the sections on vector types and alignment of NVIDIA, "CUDA C++ Programming Guide".
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    int i = 4 * threadIdx.x;
    float4 four = *(const float4*)(x + i);  // at instead: float4 four = *(const float4*)(x + i + 1);
    y[threadIdx.x] = four.x + four.y + four.z + four.w;
}
""")
def four_numbers() -> Launch:
    x = numbers(132, np.float32)
    return Launch(1, 32, x, Out(x[:128].reshape(32, 4).sum(1)))


@program(r"""
__global__ void KERNEL(const int* x, long long* y, int first) {
    const int* halves = x + first + 2 * threadIdx.x;  // instead: const int* halves = x + 1 + first + 2 * threadIdx.x;
    y[threadIdx.x] = *(const long long*)halves >> 32;  // at
}
""")
def two_halves() -> Launch:
    x = numbers(68)
    return Launch(1, 32, x, Out(x[3:67:2].astype(np.uint64)), 2)


@program(r"""
__global__ void KERNEL(const unsigned char* packets, unsigned* y) {
    const unsigned char* packet = packets + 8 * threadIdx.x;
    y[threadIdx.x] = *(const unsigned*)(packet + 4);  // at instead: y[threadIdx.x] = *(const unsigned*)(packet + 2);
}
""")
def a_field_of_a_packet() -> Launch:
    packets = numbers(8 * 16, np.uint8)
    return Launch(1, 16, packets, Out(packets.view(np.uint32)[1::2].copy()))
