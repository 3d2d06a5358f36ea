"""The groups of ``cooperative_groups.h``: the block, tiles of a warp, lanes that run together.

After the chapter on cooperative groups of the CUDA C++ Programming Guide, and M. Harris and K. Perelygin, "Cooperative
Groups: Flexible CUDA Thread Programming" (NVIDIA, 2017).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    namespace cg = cooperative_groups;
    __shared__ int part[64];
    cg::thread_block block = cg::this_thread_block();
    int t = block.thread_rank();
    part[t] = x[blockIdx.x * 64 + t];  // A
    for (int step = 32; step > 0; step /= 2) {
        block.sync();  // missing barrier: ;
        if (t < step) part[t] += part[t + step];  // B
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def sum_of_a_block() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(x.reshape(2, 64).sum(1)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[64];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int t = threadIdx.x;
    near[t] = x[t];  // A
    tile.sync();  // missing warp barrier: ;
    y[t] = near[t / 8 * 8 + 7 - tile.thread_rank()];  // B
}
""")
def reversal_of_tiles() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x.reshape(8, 8)[:, ::-1].ravel()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[64];
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    // missing warp barrier: auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int t = threadIdx.x;
    near[t] = x[t];  // A
    tile.sync();
    y[t] = near[t / 16 * 16 + 15 - t % 16];  // B
}
""")
def tiles_that_are_too_small() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x.reshape(4, 16)[:, ::-1].ravel()))


@program(r"""
template <class Group>
__device__ int KERNEL_sum(Group group, int* part, int value) {
    int rank = group.thread_rank();
    for (int step = group.size() / 2; step > 0; step /= 2) {
        part[rank] = value;  // A
        group.sync();  // missing barrier: ;
        if (rank < step) value += part[rank + step];  // B
        group.sync();  // missing barrier (read): ;
    }
    return value;
}
__global__ void KERNEL(const int* x, int* sum) {
    namespace cg = cooperative_groups;
    __shared__ int part[64];
    int value = KERNEL_sum(cg::this_thread_block(), part, x[threadIdx.x]);
    if (threadIdx.x == 0) *sum = value;
}
""")
def function_for_any_group() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out([x.sum()]))


@program(r"""
template <class Group>
__device__ int KERNEL_sum(const Group& group, int* part, int value) {
    int rank = group.thread_rank();
    for (int step = group.size() / 2; step > 0; step /= 2) {
        part[rank] = value;  // A
        group.sync();  // missing warp barrier: ;
        if (rank < step) value += part[rank + step];  // B
        group.sync();
    }
    return value;
}
__global__ void KERNEL(const int* x, int* sums) {
    namespace cg = cooperative_groups;
    __shared__ int part[2][32];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int value = KERNEL_sum(warp, part[warp.meta_group_rank()], x[threadIdx.x]);
    if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = value;
}
""")
def function_for_warps() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x.reshape(2, 32).sum(1)))


@program(r"""
__global__ void KERNEL(const int* x, int* sum) {
    namespace cg = cooperative_groups;
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int value = cg::reduce(tile, x[blockIdx.x * 64 + threadIdx.x], cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(sum, value);  // A B
    // missing atomic: if (tile.thread_rank() == 0) *sum += value;
}
""")
def sum_of_tiles() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out([x.sum()]))


@program(r"""
__device__ int KERNEL_place(int* count) {
    namespace cg = cooperative_groups;
    auto active = cg::coalesced_threads();
    int start = 0;
    if (active.thread_rank() == 0) start = atomicAdd(count, active.size());  // A B
    // missing atomic: if (active.thread_rank() == 0) start = *count, *count += active.size();
    return active.shfl(start, 0) + active.thread_rank();
}
__global__ void KERNEL(const int* x, int* y, int* count) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (x[i] % 4 == 1) y[KERNEL_place(count)] = x[i];
}
""")
def counter_of_active_lanes() -> Launch:
    x = numbers(128)
    kept = x[x % 4 == 1]
    return Launch(2, 64, x, Out(np.pad(kept, (0, 128 - len(kept))), of=np.sort), Out([len(kept)]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int list[32];
    int lane = threadIdx.x;
    if (x[lane] % 2) {
        auto odd = cg::coalesced_threads();
        list[odd.thread_rank()] = x[lane];  // A
        odd.sync();  // missing warp barrier: ;
        y[lane] = list[odd.size() - 1 - odd.thread_rank()];  // B
    }
}
""")
def reversal_of_active_lanes() -> Launch:
    x = numbers(32)
    y = np.zeros(32, np.int32)
    y[x % 2 == 1] = x[x % 2 == 1][::-1]
    return Launch(1, 32, x, Out(y))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[2][32];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    near[warp.meta_group_rank()][warp.thread_rank()] = x[block.thread_rank()];  // A
    cg::sync(block);  // missing barrier: cg::sync(warp);
    y[block.thread_rank()] = near[1 - warp.meta_group_rank()][warp.thread_rank()];  // B
}
""")
def barrier_of_the_wrong_group() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.roll(x, 32)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int shared[2][4];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    auto odd = cg::binary_partition(tile, x[block.thread_rank()] % 2 == 1);
    int found = cg::reduce(odd, x[block.thread_rank()], cg::plus<int>());
    int side = x[block.thread_rank()] % 2, row = tile.meta_group_rank();
    if (odd.thread_rank() == 0) shared[side][row] = found;  // A
    tile.sync();  // missing warp barrier: ;
    y[block.thread_rank()] = shared[0][row] - shared[1][row];  // B
}
""")
def sides_of_tiles() -> Launch:
    x = numbers(32)
    rows = x.reshape(4, 8)
    signed = np.where(rows % 2 == 1, -rows, rows).sum(1, keepdims=True)
    return Launch(1, 32, x, Out(np.broadcast_to(signed, (4, 8)).copy()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[64];
    cg::thread_group half = cg::tiled_partition(cg::this_thread_block(), 16);
    int t = threadIdx.x;
    near[t] = x[t] * 3;  // A
    half.sync();  // missing warp barrier: ;
    y[t] = near[t ^ 15];  // B
}
""")
def tiles_with_a_size_at_run_time() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(3 * x[np.arange(64) ^ 15]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[32];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int t = threadIdx.x;
    auto alike = cg::labeled_partition(warp, x[t] % 3);
    int first = alike.shfl(t, 0);
    near[t] = x[t];  // A
    alike.sync();  // missing warp barrier: ;
    y[t] = near[first];  // B
}
""")
def first_of_equal_labels() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out([x[np.flatnonzero(x % 3 == one % 3)[0]] for one in x]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[32];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int t = threadIdx.x;
    auto side = cg::binary_partition(warp, t % 2 == 0);
    near[t] = x[t];  // A
    warp.sync();  // missing warp barrier: side.sync();
    y[t] = near[t ^ 1] * side.size();  // B
}
""")
def neighbours_on_the_other_side() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out(x[np.arange(32) ^ 1] * 16))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[32];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto pairs = cg::tiled_partition<4>(warp);  // missing warp barrier: auto pairs = cg::tiled_partition<2>(warp);
    int t = threadIdx.x;
    near[t] = x[t];  // A
    pairs.sync();
    y[t] = near[t ^ 3];  // B
}
""")
def tiles_of_tiles() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out(x[np.arange(32) ^ 3]))
