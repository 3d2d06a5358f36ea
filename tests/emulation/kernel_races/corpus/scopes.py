"""Fences, atomic objects and barriers that reach too few threads, and data in volatile memory.

After the sections on memory fences, on atomic functions and on ``__syncwarp()`` of the CUDA C++ Programming Guide, and
the pages on ``cuda::atomic_ref`` and on scopes of threads of the documentation of libcu++.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program

ZERO = np.zeros(1, np.int32)


@program(r"""
__global__ void KERNEL(const int* x, volatile int* parts, int* count, int* sum) {
    if (threadIdx.x != 0) return;
    parts[blockIdx.x] = 2 * x[blockIdx.x];  // A
    __threadfence();  // missing fence: ;
    // missing scope (block): __threadfence_block();
    if (atomicAdd(count, 1) == gridDim.x - 1) {
        __threadfence();  // missing fence (last): ;
        int all = 0;
        for (int i = 0; i < gridDim.x; ++i) all += parts[i];  // B
        *sum = all;
    }
}
""")
def volatile_parts_of_blocks() -> Launch:
    x = numbers(4)
    return Launch(4, 32, x, np.zeros(4, np.int32), ZERO, Out([2 * x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ volatile int part[64];
    int t = threadIdx.x;
    part[t] = x[t];  // A
    __syncthreads();  // missing barrier: ;
    y[t] = part[63 - t];  // B
}
""")
def volatile_shared_memory_of_two_warps() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* parts, int* count, int* sum) {
    if (threadIdx.x != 0) return;
    parts[blockIdx.x] = x[blockIdx.x];  // A
    __threadfence_system();  // missing fence: ;
    // missing scope (block): __threadfence_block();
    if (atomicAdd_system(count, 1) == gridDim.x - 1) {
        __threadfence_system();  // missing fence (last): ;
        // missing scope (last_block): __threadfence_block();
        int all = 0;
        for (int i = 0; i < gridDim.x; ++i) all += parts[i];  // B
        *sum = all;
    }
}
""")
def parts_by_functions_of_the_system() -> Launch:
    x = numbers(4)
    return Launch(4, 32, x, np.zeros(4, np.int32), ZERO, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* count) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(*count);
    // missing scope: cuda::atomic_ref<int, cuda::thread_scope_block> ref(*count);
    ref.fetch_add(x[blockIdx.x * 32 + threadIdx.x], cuda::memory_order_relaxed);  // A B
}
""")
def count_by_atomic_ref() -> Launch:
    x = numbers(64)
    return Launch(2, 32, x, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* parts, int* count, int* sum) {
    if (threadIdx.x != 0) return;
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(*count);
    parts[blockIdx.x] = x[blockIdx.x];  // A
    int before = ref.fetch_add(1, cuda::memory_order_acq_rel);
    // missing fence: int before = ref.fetch_add(1, cuda::memory_order_relaxed);
    // missing fence (release): int before = ref.fetch_add(1, cuda::memory_order_acquire);
    // missing fence (acquire): int before = ref.fetch_add(1, cuda::memory_order_release);
    if (before == gridDim.x - 1) {
        int all = 0;
        for (int i = 0; i < gridDim.x; ++i) all += parts[i];  // B
        *sum = all;
    }
}
""")
def parts_by_atomic_ref() -> Launch:
    x = numbers(4)
    return Launch(4, 32, x, np.zeros(4, np.int32), ZERO, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* lock, int* sum) {
    if (threadIdx.x != 0) return;
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(*lock);
    int open = 0;
    while (!ref.compare_exchange_weak(open, 1, cuda::memory_order_acquire)) open = 0;
    // missing fence (taken): while (!ref.compare_exchange_weak(open, 1, cuda::memory_order_relaxed)) open = 0;
    *sum += x[blockIdx.x];  // A B
    ref.store(0, cuda::memory_order_release);  // missing fence: ref.store(0, cuda::memory_order_relaxed);
}
""")
def lock_by_atomic_ref() -> Launch:
    x = numbers(3)
    return Launch(3, 32, x, ZERO, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* parts, int* count, int* sum) {
    if (threadIdx.x != 0) return;
    parts[blockIdx.x] = x[blockIdx.x];  // A
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);  // missing fence: ;
    // missing scope (block): cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);
    if (atomicAdd(count, 1) == gridDim.x - 1) {
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);  // missing fence (last): ;
        int all = 0;
        for (int i = 0; i < gridDim.x; ++i) all += parts[i];  // B
        *sum = all;
    }
}
""")
def parts_by_fences_of_threads() -> Launch:
    x = numbers(4)
    return Launch(4, 32, x, np.zeros(4, np.int32), ZERO, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* part, int* flag, int* count, int* turn, int* y) {
    __shared__ int b;
    int t = threadIdx.x;
    if (t == 0) b = atomicAdd(turn, 1);
    __syncthreads();
    if (t == 0 && b == 0) {
        part[0] = x[0];  // A
        __threadfence_block();  // missing fence: ;
        atomicExch(flag, 1);
    }
    if (t == 32 && b == 0) {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();  // missing fence (between): ;
        // missing scope (block): __threadfence_block();
        atomicExch(count, 1);
    }
    if (t == 0 && b == 1) {
        while (atomicAdd(count, 0) == 0) {}
        // missing scope (other): while (atomicAdd(flag, 0) == 0) {}
        __threadfence();  // missing fence (last): ;
        y[0] = part[0];  // B
    }
}
""")
def through_a_thread_of_the_block_to_another_block() -> Launch:
    x = numbers(1)
    return Launch(2, 64, x, ZERO, ZERO, ZERO, ZERO, Out(x))


@program(r"""
__global__ void KERNEL(const int* x, volatile int* part, int* count, int* turn, int* y) {
    __shared__ int b;
    int t = threadIdx.x;
    if (t == 0) b = atomicAdd(turn, 1);
    __syncthreads();
    if (t == 0 && b == 0) {
        part[0] = x[0];  // A(taken)
        __threadfence_block();
        atomicExch(count, 1);
    }
    if (t == 32 && b == 0) {
        while (atomicAdd(count, 0) != 1) {}
        __threadfence_block();  // missing fence (taken): ;
        part[0] += x[1];  // A B(taken)
        __threadfence();  // missing fence (given): ;
        atomicExch(count, 2);
    }
    if (t == 0 && b == 1) {
        while (atomicAdd(count, 0) != 2) {}
        __threadfence();  // missing fence: ;
        y[0] = part[0];  // B
    }
}
""")
def one_counter_for_threads_and_blocks() -> Launch:
    x = numbers(2)
    return Launch(2, 64, x, ZERO, ZERO, ZERO, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* lock, volatile int* sum) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();  // missing fence (taken): ;
    sum[0] = sum[0] + x[blockIdx.x];  // A B
    __threadfence();  // missing fence: ;
    atomicExch(lock, 0);
}
""")
def volatile_sum_under_a_lock() -> Launch:
    x = numbers(3)
    return Launch(3, 32, x, ZERO, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* lock, volatile int* last) {
    if (threadIdx.x % 32 != 0) return;
    while (atomicCAS_block(lock, 0, 1) != 0) {}
    __threadfence_block();
    last[0] = x[threadIdx.x];  // A B
    __threadfence_block();  // missing fence: ;
    atomicExch_block(lock, 0);
}
""")
def volatile_write_right_behind_a_fence() -> Launch:
    x = np.full(64, 7, np.int32)
    return Launch(1, 64, x, ZERO, Out([7]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int part[32];
    int lane = threadIdx.x;
    part[lane] = x[lane];  // A
    __syncwarp();  // missing warp barrier: ;
    // missing warp barrier (halves): __syncwarp(lane < 16 ? 0xffff : 0xffff0000);
    y[lane] = part[31 - lane];  // B
}
""")
def lanes_of_two_halves() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out(x[::-1]))
