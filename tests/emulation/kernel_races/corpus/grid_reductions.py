"""Reductions of a whole grid: atomic functions, and the last block that adds the sums of all blocks.

After the sample ``threadFenceReduction`` and the sections on memory fences and on atomic functions with scopes of the
CUDA C++ Programming Guide.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);  // A B missing atomic: if (i < n) *sum += x[i];
}
""")
def sum_of_all_threads() -> Launch:
    x = numbers(250)
    return Launch(4, 64, x, Out([x.sum()]), 250)


@program(r"""
__global__ void KERNEL(const int* x, int* sum) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) atomicAdd(sum, part[0]);  // A B missing atomic: if (t == 0) sum[0] += part[0];
}
""")
def sums_of_blocks() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* sum) {
    int value = __reduce_add_sync(0xffffffff, x[blockIdx.x * 64 + threadIdx.x]);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(sum, value);  // A B missing scope: atomicAdd_block(sum, value);
    }
}
""")
def sum_with_atomics_of_the_device() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums, unsigned* done, int* total) {
    __shared__ bool last;
    int t = threadIdx.x;
    int value = __reduce_add_sync(0xffffffff, x[blockIdx.x * 32 + t]);
    if (t == 0) {
        sums[blockIdx.x] = value;  // A
        __threadfence();  // missing fence: ;
        // missing scope (block): __threadfence_block();
        last = atomicInc(done, gridDim.x) == gridDim.x - 1;
        __threadfence();
    }
    __syncwarp();
    if (last && t == 0) {
        int all = 0;
        for (int i = 0; i < gridDim.x; ++i) all += sums[i];  // B
        *total = all;
    }
}
""")
def last_block_of_one_warp() -> Launch:
    x = numbers(128)
    return Launch(4, 32, x, np.zeros(4, np.int32), np.zeros(1, np.uint32), Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const float* x, volatile float* sums, unsigned* done, float* total) {
    __shared__ float part[64];
    __shared__ bool last;
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];
    for (int step = 32; step > 0; step /= 2) {
        __syncthreads();
        if (t < step) part[t] += part[t + step];
    }
    if (t == 0) {
        sums[blockIdx.x] = part[0];  // A
        __threadfence();  // missing fence: ;
        unsigned before = atomicInc(done, gridDim.x);
        last = before == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        part[t] = t < gridDim.x ? sums[t] : 0;  // B
        for (int step = 32; step > 0; step /= 2) {
            __syncthreads();
            if (t < step) part[t] += part[t + step];
        }
        if (t == 0) *total = part[0];
    }
}
""")
def last_block_as_in_the_guide() -> Launch:
    x = numbers(384, np.float32)
    return Launch(6, 64, x, np.zeros(6, np.float32), np.zeros(1, np.uint32), Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums, int* done, int* total) {
    __shared__ int turn;
    int t = threadIdx.x;
    sums[blockIdx.x * 64 + t] = 2 * x[blockIdx.x * 64 + t];  // A
    __threadfence();
    __syncthreads();  // missing barrier: ;
    if (t == 0) turn = atomicAdd(done, 1);  // A(turn)
    __syncthreads();  // missing barrier (turn): ;
    if (turn == gridDim.x - 1) {  // B(turn)
        __threadfence();
        int all = 0;
        for (int i = t; i < gridDim.x * 64; i += 64) all += sums[i];  // B
        atomicAdd(total, all);
    }
}
""")
def last_block_reads_what_all_threads_wrote() -> Launch:
    x = numbers(192)
    return Launch(3, 64, x, np.zeros(192, np.int32), Out([3]), Out([2 * x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* sum, int n) {
    int mine = 0;
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) mine += x[i];
    atomicAdd(&sum[threadIdx.x % 4], mine);  // A B missing atomic: sum[threadIdx.x % 4] += mine;
}
""")
def grid_stride_into_four_sums() -> Launch:
    x = numbers(1000)
    owners = np.arange(1000) % 128 % 64 % 4
    return Launch(2, 64, x, Out(np.bincount(owners, x).astype(np.int32)), 1000)


@program(r"""
__device__ void KERNEL_raise(float* most, float mine) {
    int* bits = (int*)most;
    int old = atomicAdd(bits, 0), assumed;  // A
    do {
        assumed = old;
        if (__int_as_float(assumed) >= mine) return;
        int next = __float_as_int(mine);
        old = atomicCAS(bits, assumed, next);  // B missing atomic: old = bits[0], bits[0] = next;
    } while (old != assumed);
}
__global__ void KERNEL(const float* x, float* most) {
    KERNEL_raise(most, x[blockIdx.x * 64 + threadIdx.x]);
}
""")
def largest_by_compare_and_swap() -> Launch:
    x = numbers(128, np.float32)
    return Launch(2, 64, x, Out([x.max()]))


@program(r"""
__global__ void KERNEL(const double* x, double* mean, double* m2, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(mean, x[i] / n);
        atomicAdd(m2, x[i] * x[i] / n);  // A B missing atomic: m2[0] += x[i] * x[i] / n;
    }
}
""")
def moments() -> Launch:
    x = numbers(128, np.float64)
    return Launch(2, 64, x, Out([x.mean()]), Out([(x * x).mean()]), 128)


@program(r"""
__global__ void KERNEL(const int* x, const int* keys, int* sums) {
    int i = blockIdx.x * 64 + threadIdx.x;
    unsigned same = __match_any_sync(0xffffffff, keys[i]);
    int sum = 0;
    for (int lane = 0; lane < 32; ++lane) {
        int other = __shfl_sync(0xffffffff, x[i], lane);
        if (same >> lane & 1) sum += other;
    }
    if (__ffs(same) - 1 == threadIdx.x % 32) {
        atomicAdd(&sums[keys[i]], sum);  // A B missing atomic: sums[keys[i]] += sum;
    }
}
""")
def sums_by_key_with_leaders() -> Launch:
    x, keys = numbers(128), (numbers(128) * 3) % 5
    return Launch(2, 64, x, keys, Out(np.bincount(keys, x).astype(np.int32)))


@program(r"""
__global__ void KERNEL(const int* keys, const int* x, int* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || (i > 0 && keys[i - 1] == keys[i])) return;
    int sum = 0, key = keys[i];
    for (int at = i; at < n && keys[at] == key; ++at) sum += x[at];
    sums[key] = sum;  // A B instead: sums[key / 2] = sum;
}
""")
def sums_of_sorted_keys() -> Launch:
    keys, x = np.sort(numbers(128) % 10).astype(np.int32), numbers(128)
    return Launch(2, 64, keys, x, Out(np.bincount(keys, x).astype(np.int32)), 128)


@program(r"""
__global__ void KERNEL(const int* x, int* count) {
    bool odd = x[blockIdx.x * 64 + threadIdx.x] % 2;
    int found = __syncthreads_count(odd);
    if (threadIdx.x == 0) atomicAdd(count, found);  // A B missing atomic: if (threadIdx.x == 0) *count += found;
}
""")
def count_of_blocks() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, Out([(x % 2).sum()]))


@program(r"""
__global__ void KERNEL(const unsigned char* x, unsigned* checksum) {
    unsigned word = 0;
    int i = blockIdx.x * 32 + threadIdx.x;
    for (int k = 0; k < 4; ++k) word |= (unsigned)x[4 * i + k] << 8 * k;
    atomicXor(checksum, word);  // A B missing atomic: *checksum ^= word;
}
""")
def checksum_of_words() -> Launch:
    x = numbers(512, np.uint8)
    return Launch(4, 32, x, Out(np.bitwise_xor.reduce(x.view(np.uint32), keepdims=True)))


@program(r"""
__global__ void KERNEL(const float4* x, float* sums) {
    float4 v = x[blockIdx.x * 32 + threadIdx.x];
    atomicAdd(&sums[0], v.x);
    atomicAdd(&sums[1], v.y);
    atomicAdd(&sums[2], v.z);  // A B missing atomic: sums[2] += v.z;
    atomicAdd(&sums[3], v.w);
}
""")
def components_of_vectors() -> Launch:
    x = numbers(256, np.float32).reshape(64, 4)
    return Launch(2, 32, x, Out(x.sum(0)))
