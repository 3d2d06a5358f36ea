"""Prefix sums: in a block, in warps, and over a grid with a look-back at earlier blocks.

After W. D. Hillis and G. L. Steele, "Data Parallel Algorithms" (1986), G. E. Blelloch, "Prefix Sums and Their
Applications" (1990), and D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int sum[64];
    int t = threadIdx.x;
    sum[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        int before = t >= step ? sum[t - step] : 0;  // A
        __syncthreads();  // missing barrier (read): ;
        sum[t] += before;  // B
        __syncthreads();  // missing barrier (written): ;
    }
    y[blockIdx.x * 64 + t] = sum[t];
}
""")
def single_buffer() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(x.reshape(2, 64).cumsum(1).ravel()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int sum[2][64];
    int t = threadIdx.x, now = 0;
    sum[0][t] = x[t];
    for (int step = 1; step < 64; step *= 2) {
        __syncthreads();  // missing barrier: ;
        int next = 1 - now;  // instead (one): int next = now;
        sum[next][t] = t >= step ? sum[now][t] + sum[now][t - step] : sum[now][t];  // A B
        now = next;
    }
    y[t] = sum[now][t];
}
""")
def two_buffers() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x.cumsum()))


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    extern __shared__ float buffer[];
    float *from = buffer, *to = buffer + blockDim.x;
    int t = threadIdx.x;
    from[t] = t > 0 ? x[t - 1] : 0;  // A
    __syncthreads();  // missing barrier: ;
    for (int step = 1; step < blockDim.x; step *= 2) {
        to[t] = t >= step ? from[t] + from[t - step] : from[t];  // B
        __syncthreads();
        float* swapped = from;
        from = to, to = swapped;
    }
    y[t] = from[t];
}
""")
def exclusive_with_swapped_pointers() -> Launch:
    x = numbers(96, np.float32)
    return Launch(1, 96, x, Out(x.cumsum() - x), shared=2 * 96 * 4)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int tree[128];
    int t = threadIdx.x;
    tree[2 * t] = x[2 * t];
    tree[2 * t + 1] = x[2 * t + 1];
    for (int step = 1; step < 128; step *= 2) {
        __syncthreads();  // missing barrier (up): ;
        int at = 2 * step * (t + 1) - 1;
        if (at < 128) tree[at] += tree[at - step];  // A(up) B(up)
    }
    __syncthreads();
    if (t == 0) tree[127] = 0;
    for (int step = 64; step > 0; step /= 2) {
        int at = 2 * step * (t + 1) - 1;
        if (at < 128) {
            int left = tree[at - step];
            tree[at - step] = tree[at];  // A(down) B(down)
            tree[at] += left;
        }
        __syncthreads();  // missing barrier (down): ;
    }
    y[2 * t] = tree[2 * t];
    y[2 * t + 1] = tree[2 * t + 1];
}
""")
def up_and_down_the_tree() -> Launch:
    x = numbers(128)
    return Launch(1, 64, x, Out(x.cumsum() - x))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int sums[4];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, sum = x[t];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(0xffffffff, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane == 31) sums[warp] = sum;  // A
    __syncthreads();  // missing barrier: ;
    for (int earlier = 0; earlier < warp; ++earlier) sum += sums[earlier];  // B
    y[t] = sum;
}
""")
def warps_and_their_sums() -> Launch:
    x = numbers(128)
    return Launch(1, 128, x, Out(x.cumsum()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int sums[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, sum = x[t];
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(0xffffffff, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        int total = lane < 3 ? sums[lane] : 0;
        for (int step = 1; step < 4; step *= 2) {
            int before = __shfl_up_sync(0xffffffff, total, step);
            if (lane >= step) total += before;
        }
        sums[lane] = total;  // A
    }
    __syncthreads();  // missing barrier: __syncwarp();
    y[t] = warp > 0 ? sum + sums[warp - 1] : sum;  // B
}
""")
def first_warp_scans_the_sums() -> Launch:
    x = numbers(96)
    return Launch(1, 96, x, Out(x.cumsum()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int sum[2][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    sum[warp][lane] = x[threadIdx.x];
    __syncwarp();
    for (int step = 1; step < 32; step *= 2) {
        int before = lane >= step ? sum[warp][lane - step] : 0;  // A
        __syncwarp();  // missing warp barrier (read): ;
        sum[warp][lane] += before;  // B
        __syncwarp();  // missing warp barrier (written): ;
    }
    y[threadIdx.x] = sum[warp][lane];
}
""")
def shared_memory_of_a_warp() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x.reshape(2, 32).cumsum(1).ravel()))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int sum[64];
    __shared__ int carry;
    int t = threadIdx.x;
    if (t == 0) carry = 0;
    for (int start = 0; start < n; start += 64) {
        sum[t] = x[start + t];
        __syncthreads();
        for (int step = 1; step < 64; step *= 2) {
            int before = t >= step ? sum[t - step] : 0;
            __syncthreads();
            sum[t] += before;
            __syncthreads();
        }
        y[start + t] = sum[t] + carry;  // A
        __syncthreads();  // missing barrier (carry): ;
        if (t == 63) carry += sum[63];  // B
    }
}
""")
def carry_from_chunk_to_chunk() -> Launch:
    x = numbers(256)
    return Launch(1, 64, x, Out(x.cumsum()), 256)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int* flags, int* prefixes) {
    __shared__ int sum[64];
    __shared__ int before;
    int t = threadIdx.x, b = blockIdx.x;
    sum[t] = x[b * 64 + t];
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        int left = t >= step ? sum[t - step] : 0;
        __syncthreads();
        sum[t] += left;
        __syncthreads();
    }
    if (t == 0) {
        int earlier = 0;
        if (b > 0) {
            while (atomicAdd(&flags[b - 1], 0) == 0) {}
            __threadfence();
            earlier = prefixes[b - 1];  // B
        }
        prefixes[b] = earlier + sum[63];  // A
        __threadfence();  // missing fence: ;
        // missing scope (block): __threadfence_block();
        atomicExch(&flags[b], 1);
        before = earlier;  // A(before)
    }
    __syncthreads();  // missing barrier (before): ;
    y[b * 64 + t] = before + sum[t];  // B(before)
}
""")
def chain_of_blocks() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, Out(x.cumsum()), np.zeros(4, np.int32), np.zeros(4, np.int32))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int* ticket, int* flags, int* sums, int* prefixes) {
    __shared__ int shared[2];
    int t = threadIdx.x;
    if (t == 0) shared[0] = atomicAdd(ticket, 1);  // A(ticket)
    __syncthreads();  // missing barrier (ticket): __syncwarp();
    int b = shared[0], sum = x[b * 64 + t];  // B(ticket)
    for (int step = 1; step < 32; step *= 2) {
        int left = __shfl_up_sync(0xffffffff, sum, step);
        if (t % 32 >= step) sum += left;
    }
    if (t == 31) shared[1] = sum;
    __syncthreads();
    if (t >= 32) sum += shared[1];
    __syncthreads();
    if (t == 63) {
        int before = 0;
        sums[b] = sum;  // A(sum)
        __threadfence();  // missing fence (sum): ;
        atomicExch(&flags[b], 1);  // the sum of this block is known
        for (int at = b - 1; at >= 0; --at) {
            int flag;
            do flag = atomicAdd(&flags[at], 0); while (flag == 0);
            __threadfence();
            before += flag == 2 ? prefixes[at] : sums[at];  // B(prefix) B(sum) B(prefix_block)
            if (flag == 2) break;
        }
        prefixes[b] = before + sum;  // A(prefix) A(prefix_block)
        __threadfence();  // missing fence (prefix): ;
        // missing scope (prefix_block): __threadfence_block();
        if (b % 2 == 0) atomicExch(&flags[b], 2);  // the sum of all blocks so far is known
        shared[0] = before;
    }
    __syncthreads();
    y[b * 64 + t] = shared[0] + sum;
}
""")
def look_back() -> Launch:
    x, four = numbers(256), np.zeros(4, np.int32)
    return Launch(4, 64, x, Out(x.cumsum()), np.zeros(1, np.int32), four, four, four)


@program(r"""
__global__ void KERNEL(const int* x, int* y, unsigned long long* states) {
    __shared__ int before;
    int t = threadIdx.x, b = blockIdx.x, sum = x[b * 32 + t];
    for (int step = 1; step < 32; step *= 2) {
        int left = __shfl_up_sync(0xffffffff, sum, step);
        if (t >= step) sum += left;
    }
    if (t == 31) {
        unsigned long long state = 1ull << 32;  // the flag and the sum in one word need no fence
        if (b > 0) {
            do state = atomicAdd(&states[b - 1], 0); while (state >> 32 == 0);  // A
        }
        before = (int)state;
        state = 1ull << 32 | (unsigned)(before + sum);
        atomicExch(&states[b], state);  // B missing atomic: states[b] = state;
    }
    __syncwarp();
    y[b * 32 + t] = before + sum;
}
""")
def flag_and_sum_in_one_word() -> Launch:
    x = numbers(128)
    return Launch(4, 32, x, Out(x.cumsum()), np.zeros(4, np.uint64))


@program(r"""
__global__ void KERNEL(const int* x, const int* heads, int* y) {
    __shared__ int sum[64], head[64];
    int t = threadIdx.x;
    sum[t] = x[t];
    head[t] = heads[t];
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        int left = 0, found = head[t];
        if (t >= step) {
            if (!found) left = sum[t - step];
            found |= head[t - step];  // A
        }
        __syncthreads();  // missing barrier: ;
        sum[t] += left;
        head[t] = found;  // B
        __syncthreads();
    }
    y[t] = sum[t];
}
""")
def segments() -> Launch:
    x, heads = numbers(64), (np.arange(64) % 10 == 0).astype(np.int32)
    return Launch(1, 64, x, heads, Out(np.concatenate([part.cumsum() for part in np.split(x, range(10, 64, 10))])))


@program(r"""
__global__ void KERNEL(const float4* x, float4* y) {
    __shared__ float last[64];
    int t = threadIdx.x;
    float4 v = x[t];
    v.y += v.x, v.z += v.y, v.w += v.z;
    last[t] = v.w;  // A
    __syncthreads();  // missing barrier: ;
    float before = 0;
    for (int i = 0; i < t; ++i) before += last[i];  // B
    v.x += before, v.y += before, v.z += before, v.w += before;
    y[t] = v;
}
""")
def four_elements_a_thread() -> Launch:
    x = numbers(256, np.float32)
    return Launch(1, 64, x.reshape(64, 4), Out(x.cumsum().reshape(64, 4)))


@program(r"""
__device__ int KERNEL_larger(int a, int b) { return a > b ? a : b; }
template <int (*operation)(int, int)>
__device__ void KERNEL_scan(int* values, int t) {
    for (int step = 1; step < 64; step *= 2) {
        int left = t >= step ? values[t - step] : values[t];  // B
        __syncthreads();
        values[t] = operation(values[t], left);
        __syncthreads();
    }
}
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int values[64];
    values[threadIdx.x] = x[threadIdx.x];  // A
    __syncthreads();  // missing barrier: ;
    KERNEL_scan<KERNEL_larger>(values, threadIdx.x);
    y[threadIdx.x] = values[threadIdx.x];
}
""")
def largest_so_far() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.maximum.accumulate(x)))
