"""Threads of a warp: barriers with whole and with partial masks, votes, shuffles and memory between them.

After the sections on warp functions of the CUDA C++ Programming Guide, and Y. Lin and V. Grover, "Using CUDA Warp-Level
Primitives" (NVIDIA, 2018).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[64];
    int t = threadIdx.x, first = t & ~31;
    near[t] = x[t];  // A
    __syncwarp();  // missing warp barrier: ;
    y[t] = near[first + (t + 1) % 32];  // B
}
""")
def rotation_of_a_warp() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.roll(x.reshape(2, 32), -1, 1).ravel()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[64];
    int t = threadIdx.x;
    near[t] = x[t];  // A
    __syncthreads();  // missing barrier: __syncwarp();
    y[t] = near[(t + 1) % 64];  // B
}
""")
def rotation_over_two_warps() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.roll(x, -1)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[32];
    int lane = threadIdx.x;
    if (lane < 16) {
        near[lane] = x[lane];  // A
        __syncwarp(0x0000ffff);  // missing warp barrier: ;
        y[lane] = near[15 - lane];  // B
    } else {
        near[lane] = x[lane] + 1;  // A(high)
        __syncwarp(0xffff0000);  // missing warp barrier (high): ;
        y[lane] = near[47 - lane];  // B(high)
    }
}
""")
def halves_of_a_warp() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out(np.concatenate([x[15::-1], x[:15:-1] + 1])))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[32];
    int lane = threadIdx.x;
    near[lane] = x[lane];  // A
    unsigned mask = 0xffffffff;  // missing warp barrier: unsigned mask = 0xffu << lane / 8 * 8;
    __syncwarp(mask);
    y[lane] = near[31 - lane];  // B
}
""")
def mask_with_too_few_lanes() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out(x[::-1].copy()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int best[2];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    unsigned odd = __ballot_sync(0xffffffff, x[t] % 2);
    if (lane == __ffs(odd) - 1) best[warp] = t;  // A
    __syncwarp();  // missing warp barrier: ;
    y[t] = x[best[warp]];  // B
}
""")
def place_of_the_first_vote() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.concatenate([np.full(32, part[part % 2 == 1][0]) for part in x.reshape(2, 32)])))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int list[2][32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    bool kept = x[t] < 60;
    unsigned votes = __ballot_sync(0xffffffff, kept);
    int before = __popc(votes & ((1u << lane) - 1));
    // instead (same): int before = __popc(votes & ((1u << lane / 2) - 1));
    if (kept) list[warp][before] = x[t];  // A A(same) B(same)
    __syncwarp();  // missing warp barrier: ;
    if (lane < __popc(votes)) y[t] = list[warp][lane];  // B
}
""")
def list_of_votes() -> Launch:
    x = numbers(64)
    parts = [part[part < 60] for part in x.reshape(2, 32)]
    return Launch(1, 64, x, Out(np.concatenate([np.pad(part, (0, 32 - len(part))) for part in parts])))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    int i = blockIdx.x * 32 + threadIdx.x, key = x[i] & 3;
    unsigned same = __match_any_sync(0xffffffff, key);
    int sum = __reduce_add_sync(same, x[i]);
    bool leads = threadIdx.x == __ffs(same) - 1;  // instead (all): bool leads = true;
    if (leads) sums[blockIdx.x * 4 + key] += sum;  // A(all) B(all) A B instead: if (leads) sums[key] += sum;
}
""")
def leaders_of_equal_keys() -> Launch:
    x = numbers(128)
    return Launch(
        4, 32, x, Out(np.concatenate([np.bincount(part & 3, part, 4) for part in x.reshape(4, 32)]).astype(np.int32))
    )


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float sums[32];
    int lane = threadIdx.x;
    float sum = x[lane];
    for (int step = 1; step < 32; step *= 2) {
        sums[lane] = sum;  // A
        __syncwarp();  // missing warp barrier (write): ;
        sum += sums[lane ^ step];  // B
        __syncwarp();  // missing warp barrier (read): ;
    }
    y[lane] = sum;
}
""")
def butterfly_in_shared_memory() -> Launch:
    x = numbers(32, np.float32)
    return Launch(1, 32, x, Out(np.full(32, x.sum())))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int chunk[2][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int start = warp * 32; start < n; start += 64) {
        chunk[warp][lane] = x[start + lane];  // A
        __syncwarp();  // missing warp barrier (write): ;
        int sum = 0;
        for (int k = 0; k <= lane; ++k) sum += chunk[warp][k];  // B
        y[start + lane] = sum;
        __syncwarp();  // missing warp barrier (read): ;
    }
}
""")
def chunks_of_warps() -> Launch:
    x = numbers(256)
    return Launch(1, 64, x, Out(x.reshape(8, 32).cumsum(1).ravel()), 256)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int value;
    int t = threadIdx.x;
    if (t < 32) {
        int most = __reduce_max_sync(0xffffffff, x[t]);
        if (t == 0) value = most;  // A
        __syncwarp();
    }
    __syncthreads();  // missing barrier: ;
    y[t] = value - x[t];  // B
}
""")
def warp_barrier_does_not_reach_other_warps() -> Launch:
    x = numbers(96)
    return Launch(1, 96, x, Out(x[:32].max() - x))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    int t = blockIdx.x * 32 + threadIdx.x;
    y[t] = x[t] * 2;  // A
    __syncwarp();  // missing warp barrier: ;
    int left = threadIdx.x > 0 ? y[t - 1] : 0;  // B A(read)
    __syncwarp();  // missing warp barrier (read): ;
    y[t] += left;  // B(read)
}
""")
def global_memory_of_a_warp() -> Launch:
    x = numbers(64)
    rows = 2 * x.reshape(2, 32)
    return Launch(2, 32, x, Out(rows + np.pad(rows, ((0, 0), (1, 0)))[:, :-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int part[64];
    int t = threadIdx.x, lane = t % 32;
    part[t] = x[t];
    __syncwarp();
    for (int step = 4; step > 0; step /= 2) {
        unsigned mask = 0xffu << lane / 8 * 8;
        if (lane % 8 < step) part[t] += part[t + step];  // A B
        __syncwarp(mask);  // missing warp barrier: ;
    }
    if (lane % 8 == 0) sums[t / 8] = part[t];
}
""")
def sums_of_eight_lanes() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x.reshape(8, 8).sum(1)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int stage[32];
    int lane = threadIdx.x;
    stage[lane] = 0;
    __syncwarp();
    if (x[lane] % 2 == 0) {
        atomicAdd(&stage[x[lane] % 8], x[lane]);  // A
    }
    __syncwarp();  // missing warp barrier: ;
    y[lane] = stage[lane % 8];  // B
}
""")
def branch_before_the_barrier() -> Launch:
    x = numbers(32)
    even = np.where(x % 2 == 0, x, 0)
    return Launch(1, 32, x, Out(np.tile(np.bincount(x % 8, even, 8).astype(np.int32), 4)))
