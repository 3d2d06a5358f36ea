"""Graphs in compressed sparse rows: searches, paths, ranks, components, triangles, independent sets, colours.

After P. Harish and P. Narayanan, "Accelerating Large Graph Algorithms on the GPU using CUDA" (2007), M. Burtscher,
R. Nasre and K. Pingali, "A Quantitative Study of Irregular Programs on GPUs" (2012), and the kinds of planted errors of
Y. Liu, N. Azami, A. Vanausdal and M. Burtscher, "Indigo3: A Parallel Graph Analytics Benchmark Suite" (2024), of
A. Kamath and A. Basu, "iGUARD: In-GPU Advanced Race Detection" (2021), and of J. Jacobson, M. Burtscher and
G. Gopalakrishnan, "HiRace: Accurate and Fast Data Race Checking for GPU Programs" (2024).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program

COUNT = 64
_matrix = numbers(COUNT * COUNT).reshape(COUNT, COUNT) < 4
_matrix = (_matrix | _matrix.T) & ~np.eye(COUNT, dtype=bool)
_matrix |= np.eye(COUNT, k=1, dtype=bool) | np.eye(COUNT, k=-1, dtype=bool)
MATRIX = _matrix.astype(np.int32)
STARTS = np.append(0, MATRIX.sum(1).cumsum()).astype(np.int32)
ENDS = np.nonzero(MATRIX)[1].astype(np.int32)
WEIGHTS = ((np.nonzero(MATRIX)[0] + ENDS) % 7 + 1).astype(np.int32)
ZERO = np.zeros(1, np.int32)


def distances(weights: np.ndarray, rounds: int = COUNT) -> np.ndarray:
    """Return the lengths of the shortest paths from the first vertex with at most ``rounds`` edges."""
    far = np.full(COUNT, 1000)
    far[0] = 0
    sources = np.nonzero(MATRIX)[0]
    for _ in range(rounds):
        before = far.copy()
        np.minimum.at(far, ENDS, before[sources] + weights)
    return far


LEVELS = distances(np.ones_like(WEIGHTS))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, int* levels, int level, int* changed) {
    int v = blockIdx.x * 32 + threadIdx.x;
    if (atomicAdd(&levels[v], 0) != level) return;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        if (atomicCAS(&levels[ends[e]], 1000, level + 1) == 1000) {  // A B
            // missing atomic: if (levels[ends[e]] == 1000 && (levels[ends[e]] = level + 1)) {
            atomicExch(changed, 1);  // A(changed) B(changed) same(changed) missing atomic (changed): *changed = 1;
        }
    }
}
""")
def level_of_a_search() -> Launch:
    before = np.where(LEVELS <= 1, LEVELS, 1000)
    return Launch(2, 32, STARTS, ENDS, Out(np.where(LEVELS <= 2, LEVELS, 1000), before), 1, Out([1]))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, int* levels, int* rounds) {
    __shared__ int more;
    int v = threadIdx.x;
    for (int level = 0; level < 10; ++level) {
        if (v == 0) more = 0;  // A B(read)
        __syncthreads();  // missing barrier: ;
        if (atomicAdd(&levels[v], 0) == level) {
            for (int e = starts[v]; e < starts[v + 1]; ++e) {
                if (atomicCAS(&levels[ends[e]], 1000, level + 1) == 1000) atomicExch(&more, 1);  // B
            }
        }
        __syncthreads();
        bool again = more;  // A(read)
        __syncthreads();  // missing barrier (read): ;
        rounds[v] += again;
    }
}
""")
def search_in_one_block() -> Launch:
    return Launch(1, 64, STARTS, ENDS, Out(LEVELS, np.append(0, np.full(63, 1000))), Out(np.full(64, LEVELS.max())))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* frontier, int size, int* levels, int level,
                       int* next, int* next_size) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= size) return;
    int v = frontier[i];
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        if (atomicCAS(&levels[ends[e]], 1000, level) == 1000) {
            int place = atomicAdd(next_size, 1);  // A B missing atomic: int place = next_size[0]++;
            next[place] = ends[e];
        }
    }
}
""")
def frontier_of_a_search() -> Launch:
    frontier, next_ones = np.nonzero(LEVELS == 1)[0].astype(np.int32), np.nonzero(LEVELS == 2)[0]
    levels = Out(np.where(LEVELS <= 2, LEVELS, 1000), np.where(LEVELS <= 1, LEVELS, 1000))
    after = Out(np.pad(next_ones, (0, 64 - len(next_ones))), of=np.sort)
    return Launch(2, 32, STARTS, ENDS, frontier, len(frontier), levels, 2, after, Out([len(next_ones)]))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, int* levels, int* queue, int source) {
    __shared__ int first, last, tail;
    int t = threadIdx.x;
    if (t == 0) queue[0] = source, first = 0, last = tail = 1, levels[source] = 0;
    __syncthreads();
    for (int level = 1; level < 30; ++level) {
        for (int at = first + t; at < last; at += 64) {  // A(bounds)
            int v = queue[at];
            for (int e = starts[v]; e < starts[v + 1]; ++e) {
                if (atomicCAS(&levels[ends[e]], 1000, level) == 1000) queue[atomicAdd(&tail, 1)] = ends[e];
            }
        }
        __syncthreads();  // missing barrier (bounds): ;
        if (t == 0) first = last, last = tail;  // B(bounds)
        __syncthreads();
    }
}
""")
def queue_of_a_search_in_one_block() -> Launch:
    levels = Out(LEVELS, np.full(64, 1000, np.int32))
    return Launch(1, 64, STARTS, ENDS, levels, Out(np.arange(64), of=np.sort), 0)


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* weights, const int* before, int* after) {
    int v = blockIdx.x * 32 + threadIdx.x;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        int length = before[v] + weights[e];
        atomicMin(&after[ends[e]], length);  // A B
        // missing atomic: if (length < after[ends[e]]) after[ends[e]] = length;
        // missing scope (block): atomicMin_block(&after[ends[e]], length);
    }
}
""")
def paths_by_pushing() -> Launch:
    before = distances(WEIGHTS, 2).astype(np.int32)
    return Launch(2, 32, STARTS, ENDS, WEIGHTS, before, Out(distances(WEIGHTS, 3), before))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* weights, const int* before, int* after) {
    int v = blockIdx.x * 32 + threadIdx.x, least = before[v];
    const int* lengths = before;  // instead: const int* lengths = after;
    for (int e = starts[v]; e < starts[v + 1]; ++e) least = min(least, lengths[ends[e]] + weights[e]);  // A
    after[v] = least;  // B
}
""")
def paths_by_pulling() -> Launch:
    before = distances(WEIGHTS, 3).astype(np.int32)
    return Launch(2, 32, STARTS, ENDS, WEIGHTS, before, Out(distances(WEIGHTS, 4), before))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* weights, int* lengths, int* rounds) {
    __shared__ int changed;
    int v = threadIdx.x;
    for (int round = 0; round < 64; ++round) {
        if (v == 0) changed = 0;  // A(read)
        __syncthreads();
        int mine = atomicAdd(&lengths[v], 0);
        for (int e = starts[v]; e < starts[v + 1]; ++e) {
            int length = mine + weights[e];
            if (atomicMin(&lengths[ends[e]], length) > length) atomicOr(&changed, 1);  // A
        }
        __syncthreads();  // missing barrier: ;
        int again = changed;  // B
        __syncthreads();  // missing barrier (read): ;
        if (again && v == 0) *rounds = 1;
    }
}
""")
def paths_until_nothing_changes() -> Launch:
    return Launch(1, 64, STARTS, ENDS, WEIGHTS, Out(distances(WEIGHTS), np.append(0, np.full(63, 1000))), Out([1]))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const float* ranks, float* next) {
    int v = blockIdx.x * 32 + threadIdx.x, degree = starts[v + 1] - starts[v];
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        atomicAdd(&next[ends[e]], ranks[v] / degree);  // A B missing atomic: next[ends[e]] += ranks[v] / degree;
    }
}
""")
def ranks_by_pushing() -> Launch:
    degrees = MATRIX.sum(1)
    return Launch(2, 32, STARTS, ENDS, degrees.astype(np.float32), Out(degrees.astype(np.float32)))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const float* ranks, float* next, float* change) {
    int v = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    for (int e = starts[v]; e < starts[v + 1]; ++e) sum += ranks[ends[e]];
    next[v] = sum;
    atomicAdd(change, fabsf(sum - ranks[v]));  // A B missing atomic: *change += fabsf(sum - ranks[v]);
}
""")
def ranks_by_pulling() -> Launch:
    ranks = numbers(64, np.float32)
    sums = MATRIX.astype(np.float32) @ ranks
    return Launch(2, 32, STARTS, ENDS, ranks, Out(sums), Out([abs(sums - ranks).sum()]))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, float* ranks, int rounds) {
    __shared__ float now[64];
    int v = threadIdx.x;
    now[v] = ranks[v];
    for (int round = 0; round < rounds; ++round) {
        __syncthreads();  // missing barrier (written): ;
        float sum = 0;
        for (int e = starts[v]; e < starts[v + 1]; ++e) sum += now[ends[e]];  // A
        __syncthreads();  // missing barrier (read): ;
        now[v] = sum;  // B
    }
    ranks[v] = now[v];
}
""")
def ranks_of_one_block() -> Launch:
    ranks = (numbers(64) % 3).astype(np.float32)
    matrix = MATRIX.astype(np.float32)
    return Launch(1, 64, STARTS, ENDS, Out(matrix @ (matrix @ ranks), ranks), 2)


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* before, int* labels, int* changed) {
    int v = blockIdx.x * 32 + threadIdx.x, mine = before[v];
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        if (mine < before[ends[e]]) {
            atomicMin(&labels[ends[e]], mine);  // A B
            // missing atomic: labels[ends[e]] = min(labels[ends[e]], mine);
            atomicOr(changed, 1);  // A(changed) B(changed) missing atomic (changed): *changed |= 1;
        }
    }
}
""")
def components_by_labels() -> Launch:
    before = np.arange(64, dtype=np.int32)
    after = np.minimum(before, np.where(MATRIX, before, 99).min(1))
    return Launch(2, 32, STARTS, ENDS, before, Out(after, before), Out([1]))


@program(r"""
__global__ void KERNEL(const int* parents, int* grandparents) {
    int v = blockIdx.x * 32 + threadIdx.x, up = parents[v];
    int* to = grandparents;  // instead: int* to = (int*)parents;
    to[v] = parents[up];  // A B
}
""")
def pointer_jumping() -> Launch:
    parents = np.maximum(np.arange(64) - 3, 0).astype(np.int32)
    return Launch(2, 32, parents, Out(parents[parents]))


@program(r"""
__global__ void KERNEL(int* parents) {
    __shared__ int up[64];
    int v = threadIdx.x;
    up[v] = parents[v];
    __syncthreads();
    for (int round = 0; round < 6; ++round) {
        int above = up[up[v]];  // A
        __syncthreads();  // missing barrier (read): ;
        up[v] = above;  // B
        __syncthreads();  // missing barrier (written): ;
    }
    parents[v] = up[v];
}
""")
def pointer_jumping_to_the_root() -> Launch:
    return Launch(1, 64, Out(np.zeros(64, np.int32), np.maximum(np.arange(64) - 1, 0)))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, int* triangles) {
    int v = blockIdx.x * 32 + threadIdx.x, found = 0;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        int w = ends[e];
        if (w <= v) continue;
        int a = starts[v], b = starts[w];
        while (a < starts[v + 1] && b < starts[w + 1]) {
            int left = ends[a], right = ends[b];
            if (left == right && left > w) ++found;
            a += left <= right;
            b += right <= left;
        }
    }
    atomicAdd(triangles, found);  // A B missing atomic: triangles[0] += found;
}
""")
def triangles() -> Launch:
    return Launch(2, 32, STARTS, ENDS, Out([np.trace(MATRIX @ MATRIX @ MATRIX) // 6]))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, int* of_vertices) {
    int v = blockIdx.x;
    for (int e = starts[v] + threadIdx.x; e < starts[v + 1]; e += 32) {
        int w = ends[e], common = 0;
        for (int a = starts[v]; a < starts[v + 1]; ++a) {
            for (int b = starts[w]; b < starts[w + 1]; ++b) common += ends[a] == ends[b];
        }
        atomicAdd(&of_vertices[v], common);  // A B missing atomic: of_vertices[v] = of_vertices[v] + common;
    }
}
""")
def triangles_of_each_vertex() -> Launch:
    return Launch(64, 32, STARTS, ENDS, Out(np.diag(MATRIX @ MATRIX @ MATRIX).copy()))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* priorities, const int* before, int* states) {
    int v = blockIdx.x * 32 + threadIdx.x;
    if (before[v] != 0) return;  // 0: not decided, 1: in the set, 2: beside the set
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        if (before[ends[e]] == 0 && priorities[ends[e]] > priorities[v]) return;
    }
    states[v] = 1;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        atomicMax(&states[ends[e]], 2);  // A B missing atomic: states[ends[e]] = 2;
    }
}
""")
def independent_set() -> Launch:
    priorities = np.random.default_rng(3).permutation(64).astype(np.int32)
    best = np.where(MATRIX, priorities, -1).max(1) < priorities
    states = np.where(best, 1, np.where(MATRIX[:, best].any(1), 2, 0))
    return Launch(2, 32, STARTS, ENDS, priorities, np.zeros(64, np.int32), Out(states))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* priorities, int* states, int rounds) {
    int v = threadIdx.x;
    for (int round = 0; round < rounds; ++round) {
        bool best = states[v] == 0;
        for (int e = starts[v]; e < starts[v + 1]; ++e) {
            int w = ends[e];
            if (states[w] == 1) best = false;  // A
            if (states[w] == 0 && priorities[w] > priorities[v]) best = false;
        }
        __syncthreads();  // missing barrier: ;
        if (best) states[v] = 1;  // B
        __syncthreads();  // missing barrier (written): ;
    }
}
""")
def independent_set_of_one_block() -> Launch:
    priorities = np.random.default_rng(4).permutation(64).astype(np.int32)
    states = np.zeros(64, bool)
    for _ in range(4):
        open_ones = ~states & ~MATRIX[:, states].any(1)
        rivals = np.where(MATRIX.astype(bool) & ~states, priorities, -1).max(1)
        states = states | (open_ones & (rivals < priorities))
    return Launch(1, 64, STARTS, ENDS, priorities, Out(states.astype(np.int32)), 4)


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* before, int* colours) {
    int v = blockIdx.x * 32 + threadIdx.x;
    unsigned taken = 0;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        if (ends[e] < v) taken |= 1u << before[ends[e]];  // A
        // instead: if (ends[e] < v) taken |= 1u << colours[ends[e]];
    }
    colours[v] = __ffs(~taken) - 1;  // B
}
""")
def colours_of_vertices() -> Launch:
    before = numbers(64) % 5
    taken = [set(before[:v][MATRIX[v, :v] > 0]) for v in range(64)]
    return Launch(2, 32, STARTS, ENDS, before, Out([min(set(range(64)) - one) for one in taken]))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, int* degrees) {
    int v = blockIdx.x * 32 + threadIdx.x;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        atomicAdd(&degrees[ends[e]], 1);  // A B missing scope: atomicAdd_block(&degrees[ends[e]], 1);
    }
}
""")
def degrees_of_all_blocks() -> Launch:
    return Launch(2, 32, STARTS, ENDS, Out(MATRIX.sum(0)))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const float* values, const float* x, float* y) {
    __shared__ float part[32];
    int v = blockIdx.x, t = threadIdx.x;
    float sum = 0;
    for (int e = starts[v] + t; e < starts[v + 1]; e += 32) sum += values[e] * x[ends[e]];
    part[t] = sum;  // A
    __syncwarp();  // missing warp barrier: ;
    if (t == 0) {
        for (int k = 1; k < 32; ++k) sum += part[k];  // B
        y[v] = sum;
    }
}
""")
def sparse_product_with_a_warp_for_each_row() -> Launch:
    x, values = numbers(64, np.float32), WEIGHTS.astype(np.float32)
    dense = np.zeros((64, 64), np.float32)
    dense[MATRIX > 0] = values
    return Launch(64, 32, STARTS, ENDS, values, x, Out(dense @ x))


@program(r"""
__global__ void KERNEL(const int2* edges, const float* x, float* y, int n) {
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < n; e += gridDim.x * blockDim.x) {
        atomicAdd(&y[edges[e].y], x[edges[e].x]);  // A B missing atomic: y[edges[e].y] += x[edges[e].x];
    }
}
""")
def product_by_edges() -> Launch:
    edges, x = np.argwhere(MATRIX).astype(np.int32), numbers(64, np.float32)
    return Launch(2, 64, edges, x, Out(MATRIX.astype(np.float32) @ x), len(edges))


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* levels, const float* paths, float* shares,
                       int level) {
    int v = blockIdx.x * 32 + threadIdx.x;
    if (levels[v] != level) return;
    float sum = 0;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        int w = ends[e];
        if (levels[w] == level + 1) sum += paths[v] / paths[w] * (1 + shares[w]);  // A
        // instead: if (levels[w] >= level) sum += paths[v] / paths[w] * (1 + shares[w]);
    }
    shares[v] = sum;  // B
}
""")
def shares_of_shortest_paths() -> Launch:
    paths = (2.0 ** (LEVELS % 3)).astype(np.float32)
    inside = MATRIX * (LEVELS[:, None] == 2) * (LEVELS == 3)
    shares = (inside * paths[:, None] / paths).sum(1).astype(np.float32)
    return Launch(2, 32, STARTS, ENDS, LEVELS.astype(np.int32), paths, Out(shares), 2)


@program(r"""
__global__ void KERNEL(const int* starts, const int* ends, const int* parts, int* cheapest) {
    int v = blockIdx.x * 32 + threadIdx.x;
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        if (parts[v] == parts[ends[e]]) continue;
        atomicMin(&cheapest[parts[v]], 100 * abs(v - ends[e]) + e % 100);  // A B
        // missing atomic: cheapest[parts[v]] = min(cheapest[parts[v]], 100 * abs(v - ends[e]) + e % 100);
    }
}
""")
def cheapest_edges_of_parts() -> Launch:
    parts, sources = (np.arange(64) // 16).astype(np.int32), np.nonzero(MATRIX)[0]
    costs = 100 * abs(sources - ENDS) + np.arange(len(ENDS)) % 100
    across = parts[sources] != parts[ENDS]
    cheapest = [costs[across & (parts[sources] == part)].min() for part in range(4)]
    return Launch(2, 32, STARTS, ENDS, parts, Out(cheapest, np.full(4, 10**6, np.int32)))
