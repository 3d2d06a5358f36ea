"""Queues, stacks, lists and tables that many threads fill: places by atomic functions, and by counts of lanes.

After D. Merrill, M. Garland and A. Grimshaw, "Scalable GPU Graph Traversal" (2012), M. Billeter, O. Olsson and
U. Assarsson, "Efficient Stream Compaction on Wide SIMD Many-Core Architectures" (2009), A. Adinets, "CUDA Pro Tip:
Optimized Filtering with Warp-Aggregated Atomics" (NVIDIA, 2014), and D. Alcantara and others, "Real-time Parallel
Hashing on the GPU" (2009).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program

ZERO = np.zeros(1, np.int32)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 3 == 0) {
        int place = atomicAdd(count, 1);  // A B missing atomic: int place = (*count)++;
        // missing scope (block): int place = atomicAdd_block(count, 1);
        y[place] = x[i];
    }
}
""")
def filter_by_a_counter() -> Launch:
    x = numbers(200)
    kept = x[x % 3 == 0]
    return Launch(4, 64, x, Out(np.pad(kept, (0, 200 - len(kept))), of=np.sort), Out([len(kept)]), 200)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int* count) {
    int i = blockIdx.x * 64 + threadIdx.x, lane = threadIdx.x % 32, start = 0;
    bool kept = x[i] > 50;
    unsigned mask = __ballot_sync(0xffffffff, kept);
    if (lane == 0) start = atomicAdd(count, __popc(mask));  // A B
    // missing atomic: if (lane == 0) start = *count, *count += __popc(mask);
    start = __shfl_sync(0xffffffff, start, 0);
    if (kept) y[start + __popc(mask & ((1u << lane) - 1))] = x[i];
}
""")
def filter_by_votes_of_warps() -> Launch:
    x = numbers(128)
    kept = x[x > 50]
    return Launch(2, 64, x, Out(np.pad(kept, (0, 128 - len(kept))), of=np.sort), Out([len(kept)]))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int* count) {
    __shared__ int kept[64], of_block, start;
    int t = threadIdx.x, value = x[blockIdx.x * 64 + t];
    if (t == 0) of_block = 0;
    __syncthreads();
    if (value % 2) kept[atomicAdd(&of_block, 1)] = value;  // A(kept)
    __syncthreads();  // missing barrier (kept): ;
    if (t == 0) start = atomicAdd(count, of_block);  // A B(kept)
    __syncthreads();  // missing warp barrier: ;
    if (t < of_block) y[start + t] = kept[t];  // B
}
""")
def filter_by_a_list_of_the_block() -> Launch:
    x = numbers(128)
    kept = x[x % 2 == 1]
    return Launch(2, 64, x, Out(np.pad(kept, (0, 128 - len(kept))), of=np.sort), Out([len(kept)]))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int* count) {
    __shared__ int places[65];
    int t = threadIdx.x, keep = x[t] < 30;
    places[t + 1] = keep;
    if (t == 0) places[0] = 0;
    __syncthreads();
    for (int step = 1; step < 64; step *= 2) {
        int before = t + 1 > step ? places[t + 1 - step] : 0;  // B
        __syncthreads();
        places[t + 1] += before;  // A
        __syncthreads();  // missing barrier: ;
    }
    if (keep) y[places[t]] = x[t];  // A(same) B(same) instead (same): if (keep) y[places[t] / 2] = x[t];
    if (t == 63) *count = places[64];
}
""")
def filter_by_a_scan() -> Launch:
    x = numbers(64)
    kept = x[x < 30]
    return Launch(1, 64, x, Out(np.pad(kept, (0, 64 - len(kept)))), Out([len(kept)]))


@program(r"""
__global__ void KERNEL(const int* x, int* heads, int* next) {
    int i = blockIdx.x * 32 + threadIdx.x, key = x[i] % 4;
    next[i] = atomicExch(&heads[key], i);  // A B missing atomic: next[i] = heads[key], heads[key] = i;
}
""")
def lists_by_exchange() -> Launch:
    x = numbers(64)
    return Launch(
        2, 32, x, Out(np.ones(4), np.full(4, -1, np.int32), of=lambda a: (a >= 0).astype(float)), np.zeros(64, np.int32)
    )


@program(r"""
__global__ void KERNEL(int* top, int* next, const int* x, int* sum) {
    int b = blockIdx.x;
    if (threadIdx.x != 0) return;
    int old = atomicAdd(top, 0);
    for (;;) {
        next[b] = old;  // A
        __threadfence();  // missing fence: ;
        int seen = atomicCAS(top, old, b);
        if (seen == old) break;
        old = seen;
    }
    __threadfence();
    int all = 0;
    for (int at = b; at >= 0; at = next[at]) all += x[at];  // B
    atomicMax(sum, all);
}
""")
def stack_by_compare_and_swap() -> Launch:
    x = numbers(4) + 1
    return Launch(4, 32, np.full(1, -1, np.int32), np.zeros(4, np.int32), x, Out([x.sum()]))


@program(r"""
__global__ void KERNEL(const int* x, int* y, int* next, int n) {
    __shared__ int chunk;
    for (int round = 0; round < n; ++round) {
        if (threadIdx.x == 0) chunk = atomicAdd(next, 1);  // A(read) A A(global) B(global)
        // missing atomic (global): if (threadIdx.x == 0) chunk = (*next)++;
        __syncthreads();  // missing barrier (read): ;
        int mine = chunk;  // B B(read)
        __syncthreads();  // missing barrier: ;
        if (mine < n) y[mine * 64 + threadIdx.x] = x[mine * 64 + threadIdx.x] + mine;
    }
}
""")
def chunks_of_work() -> Launch:
    x = numbers(256)
    return Launch(2, 64, x, Out(x + np.arange(256) // 64), ZERO, 4)


@program(r"""
__global__ void KERNEL(const int* x, int* items, int* tail, int* y) {
    int t = threadIdx.x;
    items[atomicAdd(tail, 1)] = x[t];  // A
    __syncthreads();  // missing barrier: ;
    y[t] = items[63 - t];  // B
}
""")
def queue_filled_and_emptied() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, np.zeros(64, np.int32), ZERO, Out(x, of=np.sort))


@program(r"""
__global__ void KERNEL(const int* keys, int* table) {
    int key = keys[blockIdx.x * 32 + threadIdx.x];
    for (int place = key * 7 % 64;; place = (place + 1) % 64) {
        int old = atomicCAS(&table[place], -1, key);  // A B
        // missing atomic: int old = table[place]; if (old == -1) table[place] = key;
        // missing scope (block): int old = atomicCAS_block(&table[place], -1, key);
        if (old == -1 || old == key) break;
    }
}
""")
def table_of_keys() -> Launch:
    keys = numbers(64) % 40
    table = np.sort(np.pad(np.unique(keys), (64 - len(np.unique(keys)), 0), constant_values=-1))
    return Launch(2, 32, keys, Out(table, np.full(64, -1, np.int32), of=np.sort))


@program(r"""
__global__ void KERNEL(const int* keys, const int* x, int* table, int* sums) {
    int i = blockIdx.x * 64 + threadIdx.x, place = keys[i] * 5 % 32;
    while (true) {
        int old = atomicCAS(&table[place], 0, keys[i] + 1);
        if (old == 0 || old == keys[i] + 1) break;
        place = (place + 1) % 32;
    }
    atomicAdd(&sums[place], x[i]);  // A B missing atomic: sums[place] += x[i];
}
""")
def table_of_sums() -> Launch:
    keys, x = numbers(128) % 12, numbers(128)
    sums = np.sort(np.pad(np.bincount(keys, x).astype(np.int32), (20, 0)))
    return Launch(2, 64, keys, x, np.zeros(32, np.int32), Out(sums, np.zeros(32, np.int32), of=np.sort))


@program(r"""
__global__ void KERNEL(const int* keys, int* table, int* values, int* found) {
    int t = threadIdx.x, place = keys[t] % 64;
    while (atomicCAS(&table[place], -1, keys[t]) != -1) place = (place + 1) % 64;
    values[place] = 10 * keys[t];  // A
    __syncthreads();  // missing barrier: ;
    place = keys[63 - t] % 64;
    while (atomicAdd(&table[place], 0) != keys[63 - t]) place = (place + 1) % 64;
    found[t] = values[place];  // B
}
""")
def table_of_keys_and_values() -> Launch:
    keys = np.random.default_rng(2).permutation(101)[:64].astype(np.int32)
    return Launch(1, 64, keys, np.full(64, -1, np.int32), np.zeros(64, np.int32), Out(10 * keys[::-1]))


@program(r"""
__global__ void KERNEL(const int2* edges, int* parent) {
    int2 edge = edges[threadIdx.x];
    int a = edge.x, b = edge.y;
    for (;;) {
        while (a != atomicAdd(&parent[a], 0)) a = atomicAdd(&parent[a], 0);  // A
        while (b != atomicAdd(&parent[b], 0)) b = atomicAdd(&parent[b], 0);
        if (a == b) break;
        int high = max(a, b), low = min(a, b);
        if (atomicCAS(&parent[high], high, low) == high) break;  // B missing atomic: parent[high] = low; break;
    }
}
""")
def union_and_find() -> Launch:
    edges = np.array([(i, i + 4) for i in range(28)] + [(0, 1), (2, 3), (9, 5), (10, 6)], np.int32)

    def roots(parent: np.ndarray) -> np.ndarray:
        for _ in range(32):
            parent = parent[parent]
        return parent

    whole = np.array([0 if i % 4 < 2 else 2 for i in range(32)], np.int32)
    return Launch(1, 32, edges, Out(whole, np.arange(32, dtype=np.int32), of=roots))


@program(r"""
__global__ void KERNEL(const int* x, int* starts, int* lengths, int* count) {
    __shared__ int heads[65], runs;
    int t = threadIdx.x;
    bool head = t == 0 || x[t - 1] != x[t];
    unsigned votes = __ballot_sync(0xffffffff, head);
    __shared__ int of_warps[2];
    if (t % 32 == 0) of_warps[t / 32] = __popc(votes);  // A(votes)
    __syncthreads();  // missing barrier (votes): ;
    int place = __popc(votes & ((1u << t % 32) - 1)) + (t >= 32 ? of_warps[0] : 0);  // B(votes)
    if (head) heads[place] = t;  // A
    if (t == 0) runs = of_warps[0] + of_warps[1];
    __syncthreads();  // missing barrier: ;
    if (t < runs) {
        int first = heads[t];  // B
        starts[t] = first;
        lengths[t] = (t + 1 < runs ? heads[t + 1] : 64) - first;
    }
    if (t == 0) *count = runs;
}
""")
def runs_of_equal_elements() -> Launch:
    x = np.sort(numbers(64) % 9).astype(np.int32)
    counts = np.bincount(x)
    wide = (0, 64 - len(counts))
    starts = np.cumsum(counts) - counts
    return Launch(1, 64, x, Out(np.pad(starts, wide)), Out(np.pad(counts, wide)), Out([len(counts)]))


@program(r"""
__global__ void KERNEL(const int* x, int* found, int key, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] == key) atomicMin(found, i);  // A B
    // missing atomic: if (i < n && x[i] == key) *found = min(*found, i);
}
""")
def first_place_of_a_key() -> Launch:
    x = numbers(200) % 7
    return Launch(4, 64, x, Out([np.argmax(x == 5)], np.array([999], np.int32)), 5, 200)


@program(r"""
__global__ void KERNEL(const int* x, int* found, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[i] == key) atomicExch(found, 1);  // A B same missing atomic: if (x[i] == key) *found = 1;
}
""")
def key_found_anywhere() -> Launch:
    return Launch(4, 64, numbers(256), Out([1]), 5)


@program(r"""
__global__ void KERNEL(const char* text, const char* word, int* places, int* count) {
    __shared__ char near[70];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    near[t] = text[i];  // A
    if (t < 2) near[64 + t] = text[i + 64];
    __syncthreads();  // missing barrier: ;
    bool same = true;
    for (int k = 0; k < 3; ++k) same &= near[t + k] == word[k];  // B
    if (same) places[atomicAdd(count, 1)] = i;  // A(count) B(count)
    // missing atomic (count): if (same) places[count[0]++] = i;
}
""")
def word_in_a_text() -> Launch:
    text = (b"tea and tee, a teapot for tea: " * 5)[:130]
    places = [i for i in range(128) if text[i : i + 3] == b"tea"]
    data, word = np.frombuffer(text, np.int8), np.frombuffer(b"tea", np.int8)
    wide = np.pad(np.array(places), (0, 128 - len(places)))
    return Launch(2, 64, data, word, Out(wide, of=np.sort), Out([len(places)]))


@program(r"""
__global__ void KERNEL(unsigned* states, int* visits, int steps) {
    int i = blockIdx.x * 32 + threadIdx.x, place = i % 16;
    unsigned state = states[i];
    for (int step = 0; step < steps; ++step) {
        state = state * 1664525u + 1013904223u;
        place = (place + (state >> 31 ? 1 : 15)) % 16;
        atomicAdd(&visits[place], 1);  // A B missing atomic: visits[place]++;
    }
    states[i] = state;
}
""")
def random_walks() -> Launch:
    states, visits = np.arange(64, dtype=np.uint32), np.zeros(16, np.int32)
    place, now = np.arange(64) % 16, states.copy()
    for _ in range(8):
        now = now * np.uint32(1664525) + np.uint32(1013904223)
        place = (place + np.where(now >> 31, 1, 15)) % 16
        visits += np.bincount(place, minlength=16).astype(np.int32)
    return Launch(2, 32, Out(now, states), Out(visits), 8)
