"""Accesses outside of an array in the local memory of a thread, with indices that only the run knows.

After the small sorts and queues of threads in D. Merrill, M. Garland and A. Grimshaw, "Scalable GPU Graph Traversal"
(2012), and the k-nearest-neighbour lists of V. Garcia and others, "Fast k Nearest Neighbor Search using GPU" (2008).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int kept[8];
    for (int i = 0; i < n; i++)  // instead: for (int i = 0; i <= n; i++)
        kept[i] = x[threadIdx.x * 8 + i % 8];  // at
    int sum = 0;
    for (int i = 0; i < 8; i++) sum += kept[i] * (i + 1);
    y[threadIdx.x] = sum;
}
""")
def write_behind_an_array() -> Launch:
    x = numbers(32 * 8)
    return Launch(1, 32, x, Out((x.reshape(32, 8) * np.arange(1, 9)).sum(1)), 8)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    int table[8];
    for (int i = 0; i < 8; i++) table[i] = i * i;
    y[threadIdx.x] = table[x[threadIdx.x] % 8];  // at instead: y[threadIdx.x] = table[x[threadIdx.x] % 9];
}
""")
def read_behind_an_array() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out((x % 8) ** 2))


@program(r"""
__global__ void KERNEL(const float* x, float* y, int n) {
    float nearest[4] = {1e30f, 1e30f, 1e30f, 1e30f};
    for (int i = 0; i < n; i++) {
        float value = x[threadIdx.x * n + i];
        int place = 3;
        if (value >= nearest[3]) continue;
        while (place > 0 && nearest[place - 1] > value) {  // instead: while (place >= 0 && nearest[place] > value) {
            nearest[place] = nearest[place - 1];  // at
            place--;
        }
        nearest[place] = value;
    }
    y[threadIdx.x] = nearest[3];
}
""")
def insertion_before_an_array() -> Launch:
    x = numbers(32 * 16, np.float32).reshape(32, 16)
    return Launch(1, 32, x, Out(np.sort(x, 1)[:, 3].copy()), 16)


@program(r"""
__global__ void KERNEL(const int* children, int* y, int depth) {
    int stack[6], size = 0, visited = 0;
    stack[size++] = threadIdx.x + 1;
    while (size > 0) {
        int node = stack[--size];
        visited++;
        if (node < depth) {
            stack[size++] = 2 * node;  // at instead: for (int again = 0; again < 8; again++) stack[size++] = 2 * node;
            stack[size++] = 2 * node + 1;
        }
    }
    y[threadIdx.x] = visited;
}
""")
def a_stack_that_grows() -> Launch:
    def visits(node: int) -> int:
        return 1 + (visits(2 * node) + visits(2 * node + 1) if node < 16 else 0)

    return Launch(1, 16, numbers(16), Out([visits(each + 1) for each in range(16)]), 16)
