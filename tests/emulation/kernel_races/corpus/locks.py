"""Locks, and messages from a thread to another: flags, tickets, buffers with several places.

After J. Alglave and others, "GPU Concurrency: Weak Behaviours and Programming Assumptions" (2015), J. Stuart and
J. Owens, "Efficient Synchronization Primitives for GPUs" (2011), and the sections on memory fences and on atomic
functions of the CUDA C++ Programming Guide.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program

ZERO = np.zeros(1, np.int32)


@program(r"""
__global__ void KERNEL(int* lock, int* count) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();  // missing fence (taken): ;
        count[0] += 1;  // A B
        __threadfence();  // missing fence: ;
        // missing scope (block): __threadfence_block();
        atomicExch(lock, 0);
    }
}
""")
def lock_of_one_thread_a_block() -> Launch:
    return Launch(4, 32, ZERO, Out([4]))


@program(r"""
__global__ void KERNEL(int* lock, int* sums, const int* x) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {  // A
            __threadfence();
            sums[x[threadIdx.x] % 2] += x[threadIdx.x];
            __threadfence();
            atomicExch(lock, 0);  // B missing atomic: *lock = 0;
            done = true;
        }
    }
}
""")
def lock_of_every_thread() -> Launch:
    x = numbers(32)
    return Launch(1, 32, ZERO, Out(np.bincount(x % 2, x).astype(np.int32)), x)


@program(r"""
__global__ void KERNEL(int* locks, float* sums, const int* keys, const float* x) {
    int i = blockIdx.x * 32 + threadIdx.x, key = keys[i];
    for (bool done = false; !done;) {
        if (atomicExch(&locks[key], 1) == 0) {  // instead: if (atomicExch(&locks[i], 1) == 0) {
            __threadfence();
            sums[key] += x[i];  // A B
            __threadfence();
            atomicExch(&locks[key], 0);
            done = true;
        }
    }
}
""")
def lock_of_each_bucket() -> Launch:
    keys, x = numbers(64) % 4, numbers(64, np.float32)
    return Launch(2, 32, np.zeros(64, np.int32), Out(np.bincount(keys, x).astype(np.float32)), keys, x)


@program(r"""
__global__ void KERNEL(int* sum, const int* x) {
    __shared__ int lock, total;
    if (threadIdx.x == 0) lock = total = 0;  // A(start)
    __syncthreads();  // missing barrier (start): ;
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {  // B(start)
            __threadfence_block();  // missing fence (taken): ;
            total += x[threadIdx.x];  // A B
            __threadfence_block();  // missing fence: ;
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *sum = total;
}
""")
def lock_in_shared_memory() -> Launch:
    x = numbers(64)
    return Launch(1, 64, Out([x.sum()]), x)


@program(r"""
__global__ void KERNEL(int* next, int* serving, int* order) {
    if (threadIdx.x != 0) return;
    int mine = atomicAdd(next, 1);
    while (atomicAdd(serving, 0) != mine) {}  // A(plain)
    __threadfence();
    order[0] = order[0] * 10 + mine;  // A B
    __threadfence();  // missing fence: ;
    atomicAdd(serving, 1);  // B(plain) missing atomic (plain): ++*serving;
}
""")
def lock_with_tickets() -> Launch:
    return Launch(4, 32, ZERO, ZERO, Out([123]))


@program(r"""
__global__ void KERNEL(int* lock, int* count, int* most) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    int now = count[0] + 1;
    count[0] = now;  // A
    __threadfence();
    atomicExch(lock, 0);
    atomicMax(most, now);  // B instead: *most = count[0];
}
""")
def read_after_the_lock_is_free() -> Launch:
    return Launch(3, 32, ZERO, ZERO, Out([3]))


@program(r"""
__global__ void KERNEL(const int* x, int* data, int* flag, int* y) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 3 * x[threadIdx.x];  // A
        __threadfence();  // missing fence: ;
        // missing scope (block): __threadfence_block();
        __syncthreads();
        if (threadIdx.x == 0) atomicExch(flag, 1);
    } else {
        if (threadIdx.x == 0) {
            while (atomicAdd(flag, 0) == 0) {}
        }
        __syncthreads();  // missing barrier (all): ;
        __threadfence();
        y[(blockIdx.x - 1) * 64 + threadIdx.x] = data[threadIdx.x];  // B
    }
}
""")
def flag_of_the_first_block() -> Launch:
    x = numbers(64)
    return Launch(3, 64, x, np.zeros(64, np.int32), ZERO, Out(np.tile(3 * x, 2)))


@program(r"""
__global__ void KERNEL(int* data, int* flag, int* y) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        data[0] = 42;  // A
        __threadfence();  // missing fence (writer): ;
        atomicExch(flag, 1);
    }
    if (threadIdx.x == 0 && blockIdx.x == 1) {
        while (atomicCAS(flag, 1, 2) != 1) {}
        __threadfence();  // missing fence (reader): ;
        // missing scope (reader_block): __threadfence_block();
        *y = data[0] + data[1];  // B
    }
}
""")
def message_of_two_blocks() -> Launch:
    return Launch(2, 32, np.zeros(2, np.int32), ZERO, Out([42]))


@program(r"""
__global__ void KERNEL(int* data, int* flag, int* y) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        *data = 7;
        __threadfence();
        atomicExch(flag, 1);  // A missing scope: atomicExch_block(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}  // B
        __threadfence();
        *y = *data;
    }
}
""")
def flag_set_for_the_block_only() -> Launch:
    return Launch(2, 32, ZERO, ZERO, Out([7]))


@program(r"""
__global__ void KERNEL(int* data, int* flag, int* y) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        *data = 5;
        __threadfence();
        atomicExch(flag, 1);  // A missing atomic: *flag = 1;
    } else {
        while (atomicAdd(flag, 0) == 0) {}  // B
        __threadfence();
        *y = *data;
    }
}
""")
def flag_set_by_a_plain_write() -> Launch:
    return Launch(2, 32, ZERO, ZERO, Out([5]))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int box, made, used;
    if (threadIdx.x == 0) made = used = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < n; ++i) {
            while (atomicAdd(&used, 0) < i) {}
            __threadfence_block();
            box = x[i];  // A
            __threadfence_block();  // missing fence (made): ;
            atomicAdd(&made, 1);
        }
    } else if (threadIdx.x == 32) {
        for (int i = 0; i < n; ++i) {
            while (atomicAdd(&made, 0) <= i) {}
            __threadfence_block();
            y[i] = 2 * box;  // B
            __threadfence_block();  // missing fence (used): ;
            atomicAdd(&used, 1);
        }
    }
}
""")
def box_of_a_producer_and_a_consumer() -> Launch:
    x = numbers(20)
    return Launch(1, 64, x, Out(2 * x), 20)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int rounds) {
    __shared__ int data[32];
    int lane = threadIdx.x % 32;
    bool makes = threadIdx.x < 32;
    for (int round = 0; round < rounds; ++round) {
        if (makes) data[lane] = x[round * 32 + lane];  // A
        __syncthreads();  // missing barrier (made): ;
        if (!makes) y[round * 32 + lane] = 5 * data[lane];  // B
        __syncthreads();  // missing barrier (used): ;
    }
}
""")
def warps_that_make_and_use() -> Launch:
    x = numbers(96)
    return Launch(1, 64, x, Out(5 * x), 3)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int data, ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t == 0) {
        data = x[0] + 1;  // A
        __threadfence_block();  // missing fence: ;
        atomicExch(&ready, 1);
    }
    if (t == 40) {
        while (atomicAdd(&ready, 0) == 0) {}
        __threadfence_block();
        *y = data;  // B
    }
}
""")
def flag_in_shared_memory() -> Launch:
    x = numbers(1)
    return Launch(1, 64, x, Out(x + 1))


@program(r"""
__global__ void KERNEL(int* forks, int* meals) {
    int i = threadIdx.x;
    if (i >= 4) return;
    int low = min(i, (i + 1) % 4), high = max(i, (i + 1) % 4);
    for (bool done = false; !done;) {
        if (atomicCAS(&forks[low], 0, 1) != 0) continue;
        if (atomicCAS(&forks[high], 0, 1) == 0) {
            __threadfence();
            meals[low] += 1;  // A
            meals[high] += 10;  // B
            __threadfence();  // missing fence: ;
            atomicExch(&forks[high], 0);
            done = true;
        }
        atomicExch(&forks[low], 0);
    }
}
""")
def philosophers() -> Launch:
    return Launch(1, 32, np.zeros(4, np.int32), Out([2, 11, 11, 20]))


@program(r"""
__global__ void KERNEL(int* waiting, int* data, int* y) {
    int b = blockIdx.x;
    if (threadIdx.x != 0) return;
    atomicAdd(&data[b % 2], b + 1);  // A
    __threadfence();
    if (atomicAdd(waiting, 1) == gridDim.x - 1) {  // instead: if (atomicAdd(waiting, 1) == gridDim.x - 2) {
        __threadfence();
        y[0] = data[0], y[1] = data[1];  // B
    }
}
""")
def last_block_reads_sums_by_atomics() -> Launch:
    return Launch(4, 32, ZERO, np.zeros(2, np.int32), Out([4, 6]))


@program(r"""
__global__ void KERNEL(const int* x, int* versions, int2* record, int* y) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x < 2) {
        while (atomicCAS(versions, 2 * blockIdx.x, 2 * blockIdx.x + 1) != 2 * blockIdx.x) {}
        __threadfence();
        *record = make_int2(x[blockIdx.x], -x[blockIdx.x]);  // A
        __threadfence();  // missing fence: ;
        atomicAdd(versions, 1);
    } else {
        while (atomicAdd(versions, 0) != 4) {}
        __threadfence();  // missing fence (reader): ;
        int2 now = *record;  // B
        *y = now.x - now.y;
    }
}
""")
def record_with_a_version() -> Launch:
    x = numbers(2)
    return Launch(3, 32, x, ZERO, np.zeros(2, np.int32), Out([2 * x[1]]))


@program(r"""
__global__ void KERNEL(const int* x, int* data, volatile int* flag, int* y) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        *data = x[0] + 1;  // A
        __threadfence();  // missing fence: ;
        // missing scope (block): __threadfence_block();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        y[blockIdx.x - 1] = *data;  // B
    }
}
""")
def volatile_flag_between_fences() -> Launch:
    x = numbers(4)
    return Launch(3, 32, x, ZERO, ZERO, Out(np.repeat(x[:1] + 1, 2)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int data[32];
    __shared__ volatile int ready;
    int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        data[lane] = x[lane] * x[lane];  // A
        __syncwarp();
        __threadfence_block();  // missing fence: ;
        if (lane == 0) ready = 1;
    } else {
        if (lane == 0) {
            while (ready == 0) {}
            __threadfence_block();
        }
        __syncwarp();
        y[lane] = data[lane];  // B
    }
}
""")
def volatile_flag_of_two_warps() -> Launch:
    x = numbers(32)
    return Launch(1, 64, x, Out(x * x))


@program(r"""
__global__ void KERNEL(int* state, int* value, int* y) {
    if (threadIdx.x != 0) return;
    if (atomicCAS(state, 0, 1) == 0) {  // the first block makes the value, and all blocks use it
        *value = 6 * 7;  // A
        __threadfence();  // missing fence: ;
        atomicExch(state, 2);
    }
    while (atomicAdd(state, 0) != 2) {}
    __threadfence();
    y[blockIdx.x] = *value;  // B
}
""")
def value_made_once() -> Launch:
    return Launch(4, 32, ZERO, ZERO, Out(np.full(4, 42)))


@program(r"""
__global__ void KERNEL(int* readers, int* value, int* y) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x < 3) {
        while (atomicAdd(readers, 1) < 0) atomicSub(readers, 1);
        __threadfence();
        y[blockIdx.x] = *value;  // B
        __threadfence();  // missing fence: ;
        atomicSub(readers, 1);
    } else {
        while (atomicCAS(readers, 0, -1000) != 0) {}
        __threadfence();
        *value += 1;  // A
        __threadfence();
        atomicAdd(readers, 1000);
    }
}
""")
def lock_of_readers_and_a_writer() -> Launch:
    return Launch(4, 32, ZERO, Out([6], [5]), Out(np.full(3, 5), of=lambda y: y >= 5))  # before or after the writer


@program(r"""
__global__ void KERNEL(int* arrived, int* data, int* y) {
    int b = blockIdx.x;
    if (threadIdx.x != 0) return;
    data[b] = b + 1;  // A
    __threadfence();  // missing fence: ;
    int before = atomicAdd(&arrived[b / 2], 1);  // two blocks meet, and the later one adds
    // missing scope (block): int before = atomicAdd_block(&arrived[b / 2], 1);
    if (before == 1) {
        __threadfence();
        y[b / 2] = data[b & ~1] + data[b | 1];  // B
    }
}
""")
def pairs_of_blocks() -> Launch:
    return Launch(4, 32, np.zeros(2, np.int32), np.zeros(4, np.int32), Out([3, 7]))


@program(r"""
__global__ void KERNEL(const int* x, int* data, int* flag, int* y) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        __stcg(&data[0], x[0]);  // A
        __threadfence();  // missing fence: ;
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();  // missing fence (taken): ;
        y[blockIdx.x - 1] = __ldcg(&data[0]);  // B
    }
}
""")
def message_with_hints_for_the_caches() -> Launch:
    return Launch(3, 32, np.array([5], np.int32), ZERO, ZERO, Out([5, 5]))


@program(r"""
__global__ void KERNEL(const int* x, int* places, int* made, int* used, int* y, int n) {
    if (blockIdx.x == 0) {
        for (int i = 0; i < n; ++i) {
            while (i - atomicAdd(used, 0) >= 2) {}
            __threadfence();  // missing fence (free): ;
            places[i % 2] = x[i];  // A
            __threadfence();  // missing fence (made): ;
            atomicExch(made, i + 1);
        }
    } else {
        for (int i = 0; i < n; ++i) {
            while (atomicAdd(made, 0) <= i) {}
            __threadfence();  // missing fence (taken): ;
            y[i] = 3 * places[i % 2];  // B
            __threadfence();  // missing fence (used): ;
            atomicExch(used, i + 1);
        }
    }
}
""")
def ring_of_two_places() -> Launch:
    x = numbers(8)
    return Launch(2, 1, x, np.zeros(2, np.int32), ZERO, ZERO, Out(3 * x), 8)
