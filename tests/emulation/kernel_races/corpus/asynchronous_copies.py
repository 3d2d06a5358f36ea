"""Asynchronous copies to shared memory, of single threads and of groups.

After the chapter on asynchronous data copies of the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&near[t], &x[t], sizeof(int));  // A
    __pipeline_commit();
    __pipeline_wait_prior(0);  // instead (wait): ;
    __syncthreads();  // missing barrier (barrier): ;
    y[t] = near[63 - t];  // B
}
""")
def reversal() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ int stage[2][32];
    int t = threadIdx.x, sum = 0;
    __pipeline_memcpy_async(&stage[0][t], &x[t], sizeof(int));
    __pipeline_commit();
    for (int i = 0; i < 4; i++) {
        if (i < 3) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &x[32 * (i + 1) + t], sizeof(int));  // A
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += stage[i % 2][31 - t];  // B
        __syncthreads();  // missing warp barrier: ;
    }
    sums[t] = sum;
}
""")
def two_stages() -> Launch:
    x = numbers(128)
    return Launch(1, 32, x, Out(x.reshape(4, 32)[:, ::-1].sum(0)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[64];
    auto block = cg::this_thread_block();
    int t = threadIdx.x;
    cg::memcpy_async(block, near, x, sizeof near);  // A
    cg::wait(block);  // missing barrier: ;
    y[t] = near[63 - t];  // B
}
""")
def copy_of_a_block() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ int near[2][32];
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int row = tile.meta_group_rank(), t = tile.thread_rank();
    cg::memcpy_async(tile, near[row], x + 32 * row, 32 * sizeof(int));  // A
    cg::wait(tile);
    __syncthreads();  // missing barrier: tile.sync();
    y[32 * row + t] = near[1 - row][31 - t];  // B
}
""")
def copies_of_tiles() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    namespace cg = cooperative_groups;
    __shared__ int stage[2][64];
    auto block = cg::this_thread_block();
    int t = threadIdx.x, sum = 0;
    cg::memcpy_async(block, stage[0], 64, x, 512);  // A(wait)
    for (int i = 0; i < 4; i++) {
        if (i < 3) cg::memcpy_async(block, stage[(i + 1) % 2], x + 64 * (i + 1), 256);  // A(read)
        if (i == 3) cg::wait(block);
        cg::wait_prior<1>(block);  // missing barrier (wait): ;
        sum += stage[i % 2][63 - t];  // B
        block.sync();  // missing barrier (read): ;
    }
    sums[t] = sum;
}
""")
def two_stages_of_a_group() -> Launch:
    x = numbers(256)
    return Launch(1, 64, x, Out(x.reshape(4, 64)[:, ::-1].sum(0)))
