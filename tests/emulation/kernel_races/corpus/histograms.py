"""Histograms and other counts: in global memory, in copies of shared memory, of bytes, and of keys that are sorted.

After V. Podlozhnyuk, "Histogram calculation in CUDA" (NVIDIA, 2007), and N. Satish, M. Harris and M. Garland,
"Designing Efficient Sorting Algorithms for Manycore GPUs" (2009).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[x[i] % 8], 1);  // A B missing atomic: if (i < n) counts[x[i] % 8]++;
    // missing scope (block): if (i < n) atomicAdd_block(&counts[x[i] % 8], 1);
}
""")
def counts_in_global_memory() -> Launch:
    x = numbers(250)
    return Launch(4, 64, x, Out(np.bincount(x % 8)), 250)


@program(r"""
__global__ void KERNEL(const int* x, int* counts, int n) {
    __shared__ int mine[8];
    if (threadIdx.x < 8) mine[threadIdx.x] = 0;  // A(cleared)
    __syncthreads();  // missing barrier (cleared): ;
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        atomicAdd(&mine[x[i] % 8], 1);  // B(cleared) A(counted) A B missing atomic: mine[x[i] % 8] += 1;
    }
    __syncthreads();  // missing barrier (counted): ;
    if (threadIdx.x >= 64) {
        int bin = threadIdx.x - 64;
        if (bin < 8) atomicAdd(&counts[bin], mine[bin]);  // A(global) B(global) B(counted)
        // missing atomic (global): if (bin < 8) counts[bin] += mine[bin];
    }
}
""")
def copy_of_each_block() -> Launch:
    x = numbers(500)
    return Launch(2, 96, x, Out(np.bincount(x % 8)), 500)


@program(r"""
__global__ void KERNEL(const int* x, int* counts) {
    __shared__ int of_warps[2][16];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (lane < 16) of_warps[warp][lane] = 0;  // A(cleared)
    __syncwarp();  // missing warp barrier (cleared): ;
    for (int i = t; i < 256; i += 64) atomicAdd(&of_warps[warp][x[i] % 16], 1);  // A B(cleared)
    __syncthreads();  // missing barrier: __syncwarp();
    if (t < 16) counts[t] = of_warps[0][t] + of_warps[1][t];  // B
}
""")
def copy_of_each_warp() -> Launch:
    x = numbers(256)
    return Launch(1, 64, x, Out(np.bincount(x % 16)))


@program(r"""
__global__ void KERNEL(const unsigned char* x, unsigned char* present) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicOr((unsigned*)present + x[i] / 32, 1u << x[i] % 32);  // A B
    // missing atomic: present[x[i] / 8] |= 1 << x[i] % 8;
}
""")
def set_of_bytes() -> Launch:
    x = numbers(64, np.uint8)
    bits = np.zeros(128, np.uint8)
    bits[x] = 1
    return Launch(2, 32, x, Out(np.packbits(bits, bitorder="little")))


@program(r"""
__global__ void KERNEL(const int* x, int* counts) {
    int key = x[blockIdx.x * 64 + threadIdx.x] % 4;
    unsigned same = __match_any_sync(0xffffffff, key);
    if (threadIdx.x % 32 == __ffs(same) - 1) {
        atomicAdd(counts + key, __popc(same));  // A B missing atomic: counts[key] += __popc(same);
    }
}
""")
def counts_of_equal_lanes() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, Out(np.bincount(x % 4)))


@program(r"""
__global__ void KERNEL(const int* x, int* counts) {
    __shared__ unsigned char mine[4 * 64];  // four counts of each thread, which no other thread touches
    int t = threadIdx.x;
    for (int bin = 0; bin < 4; ++bin) mine[bin * 64 + t] = 0;  // A
    for (int i = t; i < 1024; i += 64) mine[(x[i] % 4) * 64 + t]++;  // A(many) B(many)
    // instead (many): for (int i = t; i < 1024; i += 64) mine[(x[i] % 4) * 64 + t / 2]++;
    __syncthreads();  // missing barrier: ;
    if (t < 4) {
        int sum = 0;
        for (int i = 0; i < 64; ++i) sum += mine[t * 64 + i];  // B
        counts[t] = sum;
    }
}
""")
def bytes_of_each_thread() -> Launch:
    x = numbers(1024)
    return Launch(1, 64, x, Out(np.bincount(x % 4)))


@program(r"""
__global__ void KERNEL(const int* x, int* starts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (i == 0 || x[i - 1] != x[i]) starts[x[i]] = i;  // A B
    // instead: if (i == 0 || x[i - 1] != x[i]) starts[x[i] / 2] = i;
}
""")
def starts_of_sorted_keys() -> Launch:
    x = np.sort(numbers(128) % 10)
    return Launch(2, 64, x.astype(np.int32), Out(np.searchsorted(x, np.arange(10))), 128)


@program(r"""
__global__ void KERNEL(const int* x, int* counts, int* y) {
    __shared__ int place[4];
    int t = threadIdx.x, digit = x[t] & 3;
    if (t < 4) place[t] = 0;
    __syncthreads();
    atomicAdd(&place[digit], 1);  // A(count)
    __syncthreads();  // missing barrier (count): ;
    if (t == 0) {
        int sum = 0;
        for (int d = 0; d < 4; ++d) {
            int count = place[d];
            counts[d] = count;
            place[d] = sum;  // A(start) B(count)
            sum += count;
        }
    }
    __syncthreads();  // missing barrier (start): ;
    y[atomicAdd(&place[digit], 1)] = x[t];  // A B(start) B
    // missing atomic: y[place[digit]++] = x[t];
}
""")
def buckets_of_digits() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.bincount(x & 3)), Out(np.sort(x), of=np.sort))


@program(r"""
__global__ void KERNEL(const unsigned* x, unsigned* y) {
    __shared__ unsigned values[64];
    __shared__ int zeros[64];
    int t = threadIdx.x;
    unsigned mine = x[t];
    for (int bit = 0; bit < 8; ++bit) {
        int zero = !(mine >> bit & 1);
        zeros[t] = zero;
        __syncthreads();
        for (int step = 1; step < 64; step *= 2) {
            int before = t >= step ? zeros[t - step] : 0;  // B(scan)
            __syncthreads();
            zeros[t] += before;  // A(scan)
            __syncthreads();  // missing barrier (scan): ;
        }
        int place = zero ? zeros[t] - 1 : zeros[63] + t - zeros[t];
        values[place] = mine;  // A
        __syncthreads();  // missing barrier: ;
        mine = values[t];  // B
    }
    y[t] = mine;
}
""")
def split_by_each_bit() -> Launch:
    x = numbers(64, np.uint32)
    return Launch(1, 64, x, Out(np.sort(x)))


@program(r"""
__global__ void KERNEL(const int* x, int* counts, int* first) {
    int i = blockIdx.x * 64 + threadIdx.x, key = x[i] % 8;
    if (atomicAdd(&counts[key], 1) == 0) first[key] = 1;  // A B
    // missing atomic: if (counts[key]++ == 0) first[key] = 1;
}
""")
def first_of_each_key() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(np.bincount(x % 8)), Out(np.ones(8, np.int32)))


@program(r"""
__global__ void KERNEL(const int* x, int* counts, int n) {
    __shared__ int mine[2][32];
    for (int k = threadIdx.x; k < 64; k += blockDim.x) mine[k / 32][k % 32] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd_block(&mine[i % 2][x[i] % 32], 1);  // A
    }
    __syncthreads();  // missing barrier: __threadfence_block();
    for (int bin = threadIdx.x; bin < 32; bin += blockDim.x) {
        atomicAdd(&counts[bin], mine[0][bin] + mine[1][bin]);  // B
    }
}
""")
def atomics_of_the_block() -> Launch:
    x = numbers(200)
    return Launch(1, 64, x, Out(np.bincount(x % 32)), 200)


@program(r"""
__global__ void KERNEL(const short2* x, int* counts) {
    short2 pair = x[blockIdx.x * 32 + threadIdx.x];
    int cell = 4 * (pair.y % 4) + pair.x % 4;
    atomicAdd(&counts[cell], 1);  // A B missing atomic: ++counts[cell];
}
""")
def counts_of_pairs() -> Launch:
    x = numbers(256, np.int16).reshape(128, 2)
    return Launch(4, 32, x, Out(np.bincount(4 * (x[:, 1] % 4) + x[:, 0] % 4, minlength=16)))


@program(r"""
__global__ void KERNEL(const float* x, const float* centres, float* sums, int* members) {
    int i = blockIdx.x * 64 + threadIdx.x, best = 0;
    for (int c = 1; c < 3; ++c) {
        if (fabsf(x[i] - centres[c]) < fabsf(x[i] - centres[best])) best = c;
    }
    atomicAdd(&sums[best], x[i]);  // A(sum) B(sum) missing atomic (sum): sums[best] += x[i];
    atomicAdd(&members[best], 1);  // A B missing atomic: members[best] = members[best] + 1;
}
""")
def clusters_of_k_means() -> Launch:
    x, centres = numbers(128, np.float32), np.array([10, 45, 80], np.float32)
    best = np.abs(x[:, None] - centres).argmin(1)
    return Launch(2, 64, x, centres, Out(np.bincount(best, x).astype(np.float32)), Out(np.bincount(best)))
