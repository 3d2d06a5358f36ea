"""Sorting and merging in shared and in global memory.

After K. Batcher, "Sorting Networks and their Applications" (1968), O. Green, R. McColl and D. Bader, "GPU Merge Path"
(2012), and D. Merrill and A. Grimshaw, "Revisiting Sorting for GPGPU Stream Architectures" (2010).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int keys[128];
    int t = threadIdx.x;
    keys[t] = x[t];
    for (int size = 2; size <= 128; size *= 2) {
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();  // missing barrier: ;
            int other = t ^ step;
            if (other > t) {
                int low = min(keys[t], keys[other]), high = max(keys[t], keys[other]);  // A
                keys[t] = (t & size) == 0 ? low : high;
                keys[other] = (t & size) == 0 ? high : low;  // B
            }
        }
    }
    __syncthreads();  // missing barrier (end): ;
    y[127 - t] = keys[127 - t];  // A(end)
}
""")
def bitonic() -> Launch:
    x = numbers(128)
    return Launch(1, 128, x, Out(np.sort(x)))


@program(r"""
__global__ void KERNEL(int* keys, int size, int step) {
    int i = blockIdx.x * 64 + threadIdx.x, other = i ^ step;
    if (other > i) {  // instead: if (other != i) {
        int mine = keys[i], its = keys[other];  // A
        bool up = (i & size) == 0;
        keys[i] = up == (mine < its) ? mine : its;
        keys[other] = up == (mine < its) ? its : mine;  // B
    }
}
""")
def step_of_a_bitonic_sort_of_a_grid() -> Launch:
    x = numbers(128)
    pairs = x.reshape(2, 64)
    return Launch(2, 64, Out(np.stack([pairs.min(0), pairs.max(0)]).ravel(), x), 128, 64)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    extern __shared__ int keys[];
    int t = threadIdx.x;
    keys[2 * t] = x[2 * t];  // A
    keys[2 * t + 1] = x[2 * t + 1];
    for (int round = 0; round < n; ++round) {
        __syncthreads();  // missing barrier: ;
        int i = 2 * t + round % 2;
        if (i + 1 < n && keys[i] > keys[i + 1]) {
            int left = keys[i];
            keys[i] = keys[i + 1];
            keys[i + 1] = left;  // B
        }
    }
    __syncthreads();
    y[2 * t] = keys[2 * t];
    y[2 * t + 1] = keys[2 * t + 1];
}
""")
def odd_and_even() -> Launch:
    x = numbers(96)
    return Launch(1, 48, x, Out(np.sort(x)), 96, shared=96 * 4)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int keys[64];
    int t = threadIdx.x;
    keys[t] = x[t];  // A
    __syncthreads();  // missing barrier: ;
    int rank = 0;
    for (int k = 0; k < 64; ++k) rank += keys[k] < keys[t] || (keys[k] == keys[t] && k < t);  // B
    y[rank] = keys[t];
}
""")
def ranks_of_elements() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.sort(x)))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, rank = 0;
    for (int k = 0; k < n; ++k) rank += x[k] < x[i] || (x[k] == x[i] && k < i);
    // instead: for (int k = 0; k < n; ++k) rank += x[k] < x[i];
    y[rank] = x[i];  // A B
}
""")
def ranks_of_equal_elements() -> Launch:
    x = numbers(128) % 50
    return Launch(2, 64, x, Out(np.sort(x)), 128)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int keys[2][64];
    int t = threadIdx.x, from = 0;
    keys[0][t] = x[t];
    for (int width = 1; width < 64; width *= 2) {
        __syncthreads();  // missing barrier: ;
        int start = t / (2 * width) * 2 * width, mine = keys[from][t], rank = t & (width - 1);
        bool left = (t & width) == 0;
        int low = start + (left ? width : 0), high = low + width, first = low;
        while (low < high) {
            int middle = (low + high) / 2, other = keys[from][middle];  // A
            if (left ? other < mine : other <= mine) low = middle + 1;
            else high = middle;
        }
        keys[1 - from][start + rank + low - first] = mine;  // B
        from = 1 - from;
    }
    __syncthreads();
    y[t] = keys[from][t];
}
""")
def merge_sort() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.sort(x)))


@program(r"""
__global__ void KERNEL(const int* a, const int* b, int* y, int n) {
    int start = 8 * (blockIdx.x * blockDim.x + threadIdx.x);  // the first place of this thread on the path
    if (start >= 2 * n) return;
    int low = max(0, start - n), high = min(start, n);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[start - 1 - middle]) low = middle + 1;
        else high = middle;
    }
    int i = low, j = start - low;
    for (int k = 0; k < 8; ++k) {  // instead: for (int k = 0; k <= 8 && start + k < 2 * n; ++k) {
        bool left = j >= n || (i < n && a[i] <= b[j]);
        y[start + k] = left ? a[i++] : b[j++];  // A B
    }
}
""")
def merge_path() -> Launch:
    a, b = np.sort(numbers(256)), np.sort(numbers(300)[44:])
    return Launch(2, 32, a, b, Out(np.sort(np.concatenate([a, b]))), 256)


@program(r"""
__global__ void KERNEL(const int* x, int* counts, int shift) {
    __shared__ int of_block[4];
    int t = threadIdx.x;
    if (t < 4) of_block[t] = 0;
    __syncthreads();
    atomicAdd(&of_block[x[blockIdx.x * 64 + t] >> shift & 3], 1);  // A
    __syncthreads();  // missing barrier: __syncwarp();
    if (t < 4) counts[t * gridDim.x + blockIdx.x] = of_block[t];  // B
}
""")
def digits_of_blocks() -> Launch:
    x = numbers(128)
    counts = np.stack([np.bincount(part >> 2 & 3, minlength=4) for part in x.reshape(2, 64)], axis=1)
    return Launch(2, 64, x, Out(counts), 2)


@program(r"""
__global__ void KERNEL(const int* x, const int* starts, int* y, int shift) {
    __shared__ int next[4];
    int t = threadIdx.x, digit = x[t] >> shift & 3;
    if (t < 4) next[t] = starts[t];
    __syncthreads();
    for (int warp = 0; warp < 2; ++warp) {
        if (t / 32 == warp) {
            unsigned same = __match_any_sync(0xffffffff, digit), before = same & ((1u << t % 32) - 1);
            int place = next[digit] + __popc(before);  // A(read) B
            __syncwarp();  // missing warp barrier (read): ;
            y[place % 64] = x[t];
            if (before == 0) next[digit] += __popc(same);  // A B(read)
        }
        __syncthreads();  // missing barrier: ;
    }
}
""")
def stable_places_of_digits() -> Launch:
    x = numbers(64)
    counts = np.bincount(x & 3)
    return Launch(
        1,
        64,
        x,
        np.cumsum(counts).astype(np.int32) - counts.astype(np.int32),
        Out(x[np.argsort(x & 3, kind="stable")]),
        0,
    )


@program(r"""
__global__ void KERNEL(const int* x, int* y, int pivot) {
    __shared__ int low, high;
    int t = threadIdx.x;
    if (t == 0) low = 0, high = 63;
    __syncthreads();
    int place = x[t] < pivot ? atomicAdd(&low, 1) : atomicSub(&high, 1);  // A B
    // missing atomic: int place = x[t] < pivot ? atomicAdd(&low, 1) : high--;
    y[place] = x[t];
}
""")
def two_sides_of_a_pivot() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x, of=lambda y: np.concatenate([np.sort(y[y < 40]), np.sort(y[y >= 40])])), 40)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int keys[2][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int* mine = keys[warp];
    mine[lane] = x[threadIdx.x];
    for (int round = 0; round < 32; ++round) {
        __syncwarp();  // missing warp barrier: ;
        int i = 2 * lane + round % 2;
        if (i + 1 < 32 && mine[i] > mine[i + 1]) {  // A
            int left = mine[i];
            mine[i] = mine[i + 1];
            mine[i + 1] = left;  // B
        }
    }
    __syncwarp();
    y[threadIdx.x] = mine[lane];
}
""")
def bubbles_of_warps() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.sort(x.reshape(2, 32), 1).ravel()))
