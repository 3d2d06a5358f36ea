"""Reductions of a block in shared memory.

After M. Harris, "Optimizing Parallel Reduction in CUDA" (NVIDIA, 2007), whose kernels 1 to 6 a CUDA programmer meets
first, and after the section on warp shuffles of the CUDA C++ Programming Guide.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];  // A(load)
    __syncthreads();  // missing warp barrier (load): ;
    for (int step = 1; step < 64; step *= 2) {
        if (t % (2 * step) == 0) part[t] += part[t + step];  // A(level) B
        __syncthreads();  // missing barrier (level): ;
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def tree_of_neighbours() -> Launch:
    x = numbers(256)
    return Launch(4, 64, x, Out(x.reshape(4, 64).sum(1)))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int part[128];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    for (int step = 1; step < 128; step *= 2) {
        int at = 2 * step * t;
        if (at < 128) part[at] += part[at + step];  // A B
        __syncthreads();  // missing barrier: ;
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def tree_with_strided_index() -> Launch:
    x = numbers(256)
    return Launch(2, 128, x, Out(x.reshape(2, 128).sum(1)))


@program(r"""
__global__ void KERNEL(const float* x, float* sums) {
    __shared__ float part[128];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 128 + t];  // A(load)
    __syncthreads();  // missing barrier (load): ;
    for (int step = 64; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];  // B A(level)
        __syncthreads();  // missing barrier (level): ;
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def tree_with_sequential_addresses() -> Launch:
    x = numbers(384, np.float32)
    return Launch(3, 128, x, Out(x.reshape(3, 128).sum(1)))


@program(r"""
__global__ void KERNEL(const float* x, float* sums) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * 2 * blockDim.x + t;
    part[t] = x[i] + x[i + blockDim.x];  // A
    __syncthreads();  // missing barrier: ;
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];  // B
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def tree_with_first_addition_while_loading() -> Launch:
    x = numbers(512, np.float32)
    return Launch(4, 64, x, Out(x.reshape(4, 128).sum(1)), shared=256)


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];  // A(load)
    __syncthreads();  // missing barrier (load): ;
    if (t < 32) {
        int value = part[t] + part[t + 32];  // B(load)
        __syncwarp();
        part[t] = value;
        __syncwarp();
        for (int step = 16; step > 0; step /= 2) {
            value += part[t + step];  // A
            __syncwarp();  // missing warp barrier (read): ;
            part[t] = value;  // B
            __syncwarp();  // missing warp barrier (written): ;
        }
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def last_warp_with_barriers() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(x.reshape(2, 64).sum(1)))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    if (t < 32) {
        volatile int* last = part;  // volatile orders the accesses of one thread only
        last[t] += last[t + 32];  // A(first)
        __syncwarp();  // missing warp barrier (first): ;
        if (t < 16) last[t] += last[t + 16];  // B(first) A(second)
        __syncwarp();  // missing warp barrier (second): ;
        if (t < 8) last[t] += last[t + 8];  // B(second)
        __syncwarp();
        if (t < 4) last[t] += last[t + 4];
        __syncwarp();
        if (t < 2) last[t] += last[t + 2];  // A(last)
        __syncwarp();  // missing warp barrier (last): ;
        if (t < 1) last[t] += last[t + 1];  // B(last)
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def last_warp_with_volatile() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(x.reshape(2, 64).sum(1)))


@program(r"""
template <int size>
__device__ void KERNEL_add(int* part, int t) {
    if (size >= 256) {
        if (t < 128) part[t] += part[t + 128];
        __syncthreads();
    }
    if (size >= 128) {
        if (t < 64) part[t] += part[t + 64];  // A
        __syncthreads();  // missing barrier: ;
    }
    if (t < 32) part[t] += part[t + 32];  // B
}
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int part[128];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    KERNEL_add<128>(part, t);
    __syncwarp();
    for (int step = 16; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncwarp();
    }
    if (t == 0) sums[0] = part[0];
}
""")
def tree_with_size_as_template() -> Launch:
    x = numbers(128)
    return Launch(1, 128, x, Out([x.sum(dtype=np.int32)]))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int rows) {
    __shared__ int part[64];
    int t = threadIdx.x;
    for (int row = 0; row < rows; ++row) {
        part[t] = x[row * 64 + t];  // B
        __syncthreads();
        for (int step = 32; step > 0; step /= 2) {
            if (t < step) part[t] += part[t + step];  // A(sum)
            __syncthreads();  // missing barrier (sum): ;
        }
        y[row * 64 + t] = 64 * x[row * 64 + t] - part[0];  // A B(sum)
        __syncthreads();  // missing barrier: ;
    }
}
""")
def shared_array_of_every_row() -> Launch:
    x = numbers(256)
    rows = x.reshape(4, 64)
    return Launch(1, 64, x, Out((64 * rows - rows.sum(1, keepdims=True)).ravel()), 4)


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float total;
    int t = threadIdx.x;
    if (t == 0) {
        float sum = 0;
        for (int i = 0; i < 64; ++i) sum += x[blockIdx.x * 64 + i];
        total = sum;  // A
    }
    __syncthreads();  // missing barrier: ;
    y[blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t] / total;  // B
}
""")
def total_of_one_thread_for_all() -> Launch:
    x = numbers(128, np.float32) + np.float32(1)
    rows = x.reshape(2, 64)
    return Launch(2, 64, x, Out((rows / rows.sum(1, keepdims=True)).ravel()))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int of_warps[4];
    int t = threadIdx.x, value = x[blockIdx.x * 128 + t];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (t % 32 == 0) of_warps[t / 32] = value;  // A
    __syncthreads();  // missing barrier: ;
    if (t < 32) {
        value = t < 4 ? of_warps[t] : 0;  // B
        for (int step = 2; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
        if (t == 0) sums[blockIdx.x] = value;
    }
}
""")
def sums_of_warps() -> Launch:
    x = numbers(256)
    return Launch(2, 128, x, Out(x.reshape(2, 128).sum(1)))


@program(r"""
__device__ int KERNEL_sum(int value) {
    __shared__ int of_warps[2];
    __syncthreads();  // missing barrier: ;
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;  // B
    __syncthreads();
    return of_warps[0] + of_warps[1];  // A
}
__global__ void KERNEL(const int* x, int* y) {
    int value = x[threadIdx.x];
    int sum = KERNEL_sum(value);
    int squares = KERNEL_sum(value * value);
    y[threadIdx.x] = 64 * squares - sum * sum;
}
""")
def function_called_twice() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.full(64, 64 * (x * x).sum() - x.sum() ** 2)))


@program(r"""
struct KERNEL_Place { float value; int index; };
__global__ void KERNEL(const float* x, int* index) {
    __shared__ KERNEL_Place best[64];
    int t = threadIdx.x;
    best[t].value = x[t];  // A(load)
    best[t].index = t;
    __syncthreads();  // missing barrier (load): ;
    for (int step = 32; step > 0; step /= 2) {
        if (t < step && best[t].value < best[t + step].value) {  // A B(load)
            best[t] = best[t + step];  // B
        }
        __syncthreads();  // missing warp barrier: ;
    }
    if (t == 0) index[0] = best[0].index;
}
""")
def largest_of_structs() -> Launch:
    x = np.random.default_rng(1).permutation(64).astype(np.float32)
    return Launch(1, 64, x, Out([x.argmax()]))


@program(r"""
__global__ void KERNEL(const int* x, int* least, int* most) {
    __shared__ int low[64], high[64];
    int t = threadIdx.x;
    low[t] = high[t] = x[t];  // A
    for (int step = 32; step > 0; step /= 2) {
        __syncthreads();  // missing barrier: ;
        if (t < step) {
            low[t] = min(low[t], low[t + step]);
            high[t] = max(high[t], high[t + step]);  // B
        }
    }
    if (t == 0) least[0] = low[0];
    if (t == 0) most[0] = high[0];
}
""")
def least_and_most() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out([x.min()]), Out([x.max()]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int part[8][16];
    int column = threadIdx.x, row = threadIdx.y;
    part[row][column] = x[row * 16 + column];  // A
    __syncthreads();  // missing barrier: ;
    if (row == 0) {
        int sum = 0;
        for (int i = 0; i < 8; ++i) sum += part[i][column];  // B
        sums[column] = sum;
    }
}
""")
def columns_of_a_block() -> Launch:
    x = numbers(128)
    return Launch(1, (16, 8), x, Out(x.reshape(8, 16).sum(0)))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;  // A(cleared)
    __syncthreads();  // missing barrier (cleared): ;
    int mine = x[blockIdx.x * 64 + threadIdx.x];
    atomicAdd(&total, mine);  // B(cleared) A(added) A B missing atomic: total += mine;
    __syncthreads();  // missing barrier (added): ;
    if (threadIdx.x == 63) sums[blockIdx.x] = total;  // B(added)
}
""")
def total_in_shared_memory() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(x.reshape(2, 64).sum(1)))


@program(r"""
__global__ void KERNEL(const float2* x, float2* sums) {
    __shared__ float2 part[64];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];  // A
    for (int step = 32; step > 0; step /= 2) {
        __syncthreads();  // missing barrier: ;
        if (t < step) {
            part[t].x += part[t + step].x;
            part[t].y -= part[t + step].y;  // B
        }
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def pairs_of_floats() -> Launch:
    x = numbers(256, np.float32).reshape(2, 64, 2)
    signs = np.array([(-1) ** bin(i).count("1") for i in range(64)], np.float32)
    return Launch(2, 64, x, Out(np.stack([x[..., 0].sum(1), (x[..., 1] * signs).sum(1)], axis=1)))


@program(r"""
__global__ void KERNEL(const double* x, double* sum, int n) {
    extern __shared__ double wide[];
    int t = threadIdx.x;
    wide[t] = x[t];
    __syncthreads();
    for (int left = n; left > 1; left = (left + 1) / 2) {
        int half = (left + 1) / 2;
        if (t + half < left) wide[t] += wide[t + half];  // A B
        __syncthreads();  // missing barrier: ;
    }
    if (t == 0) *sum = wide[0];
}
""")
def sizes_that_are_no_powers_of_two() -> Launch:
    x = numbers(100, np.float64)
    return Launch(1, 100, x, Out([x.sum()]), 100, shared=800)


@program(r"""
__global__ void KERNEL(const float* x, const float* y, float* product) {
    __shared__ float part[32][2];
    int t = threadIdx.x % 32, half = threadIdx.x / 32;
    part[t][half] = x[threadIdx.x] * y[threadIdx.x];  // A
    __syncthreads();  // missing barrier: __syncwarp();
    if (half == 0) {
        float value = part[t][0] + part[t][1];  // B
        for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
        if (t == 0) *product = value;
    }
}
""")
def dot_product_of_two_warps() -> Launch:
    x, y = numbers(64, np.float32), numbers(64, np.float32)[::-1].copy()
    return Launch(1, 64, x, y, Out([x @ y]))


@program(r"""
__global__ void KERNEL(const int* x, unsigned long long* best) {
    __shared__ unsigned long long most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    unsigned long long mine = (unsigned long long)x[threadIdx.x] << 32 | threadIdx.x;
    atomicMax(&most, mine);  // A B missing atomic: if (most < mine) most = mine;
    __syncthreads();
    if (threadIdx.x == 0) *best = most;
}
""")
def largest_by_packed_maximum() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out([max(np.uint64(int(value) << 32 | i) for i, value in enumerate(x))]))


@program(r"""
__global__ void KERNEL(const int* x, int* all, int limit) {
    __shared__ int inside;
    if (threadIdx.x == 0) inside = 1;
    __syncthreads();
    if (x[threadIdx.x] > limit) atomicAnd(&inside, 0);  // A B same
    // missing atomic: if (x[threadIdx.x] > limit) inside = 0;
    __syncthreads();
    if (threadIdx.x == 0) *all = inside;
}
""")
def same_answer_of_many_threads() -> Launch:
    return Launch(1, 64, numbers(64), Out([0]), 50)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[t];  // A
    int odd = __syncthreads_count(x[t] % 2);  // missing barrier: int odd = __popc(__ballot_sync(~0u, x[t] % 2));
    y[t] = part[63 - t] + odd;  // B
}
""")
def barrier_that_counts() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1] + (x % 2).sum()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int label[64];
    int t = threadIdx.x;
    bool changes = true;
    label[t] = x[t];
    while (__syncthreads_or(changes)) {
        int least = min(label[t], label[(t + 1) % 64]);  // A
        changes = least < label[t];
        __syncthreads();  // missing barrier: ;
        label[t] = least;  // B
    }
    y[t] = label[t];
}
""")
def barrier_that_asks_all_threads() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.full(64, x.min())))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int part[64];
    int t = threadIdx.x;
    if (t < n) part[t] = x[t];  // A
    __syncthreads();  // missing barrier: if (t >= n) return;
    if (t < n) y[t] = part[n - 1 - t];  // B
}
""")
def guard_in_place_of_a_barrier() -> Launch:
    x = numbers(50)
    return Launch(1, 64, x, Out(x[::-1]), 50)
