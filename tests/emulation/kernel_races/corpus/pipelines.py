"""Pipelines of libcu++: asynchronous copies in stages.

After the chapter on asynchronous data copies of the CUDA C++ Programming Guide, and the documentation of libcu++.
"""

from __future__ import annotations

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    namespace cg = cooperative_groups;
    __shared__ int stage[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int t = threadIdx.x, sum = 0;
    for (int i = 0, next = 0; i < 4; i++) {
        for (; next < 4 && next < i + 2; next++) {
            int* to = stage[next % 2];
            const int* from = x + next * 64;
            pipe.producer_acquire(), cuda::memcpy_async(block, to, from, 256, pipe);  // A
            // missing barrier (acquire): cuda::memcpy_async(block, to, from, 256, pipe), pipe.producer_acquire();
            pipe.producer_commit();
        }
        pipe.consumer_wait(), sum += stage[i % 2][63 - t];  // B
        // missing barrier (wait): sum += stage[i % 2][63 - t], pipe.consumer_wait();
        pipe.consumer_release();
    }
    sums[t] = sum;
}
""")
def two_stages_of_a_block() -> Launch:
    x = numbers(256)
    return Launch(1, 64, x, Out(x.reshape(4, 64)[:, ::-1].sum(0)))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    namespace cg = cooperative_groups;
    __shared__ int stage[2][32];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state, 32);
    int lane = threadIdx.x % 32, sum = 0;
    for (int i = 0; i < 4; i++) {
        if (threadIdx.x < 32) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[i % 2][lane], &x[i * 32 + lane], sizeof(int), pipe);  // A
            pipe.producer_commit();
        } else {
            pipe.consumer_wait(), sum += stage[i % 2][31 - lane];  // B
            // missing barrier: sum += stage[i % 2][31 - lane], pipe.consumer_wait();
            pipe.consumer_release();
        }
    }
    if (threadIdx.x >= 32) sums[lane] = sum;
}
""")
def first_warp_copies() -> Launch:
    x = numbers(128)
    return Launch(1, 64, x, Out(x.reshape(4, 32)[:, ::-1].sum(0)))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    namespace cg = cooperative_groups;
    __shared__ int stage[32];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
    bool copies = threadIdx.x / 32 % 2;
    auto role = copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state, role);
    int lane = threadIdx.x % 32, sum = 0;
    for (int i = 0; i < 4; i++) {
        if (copies) {
            pipe.producer_acquire(), cuda::memcpy_async(&stage[lane], &x[i * 32 + lane], 4, pipe);  // A
            // missing barrier: cuda::memcpy_async(&stage[lane], &x[i * 32 + lane], 4, pipe), pipe.producer_acquire();
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum += stage[31 - lane];  // B
            pipe.consumer_release();
        }
    }
    if (!copies) sums[lane] = sum;
}
""")
def roles_of_warps() -> Launch:
    x = numbers(128)
    return Launch(1, 64, x, Out(x.reshape(4, 32)[:, ::-1].sum(0)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;
    pipe.producer_acquire();
    cuda::memcpy_async(&near[t], &x[t], sizeof(int), pipe);  // A
    pipe.producer_commit();
    pipe.consumer_wait();  // instead (wait): ;
    __syncthreads();  // missing barrier (barrier): ;
    y[t] = near[63 - t];  // B
    pipe.consumer_release();
}
""")
def pipeline_of_a_thread() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[2][64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;
    for (int i = 0; i < 2; i++) {
        cuda::memcpy_async(&near[i][t], &x[i * 64 + t], sizeof(int), pipe);  // A
        pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<1>(pipe);  // instead: cuda::pipeline_consumer_wait_prior<2>(pipe);
    __syncthreads();
    y[t] = near[0][63 - t];  // B
    pipe.consumer_wait();
    y[64 + t] = near[1][t];
}
""")
def first_of_two_batches() -> Launch:
    x = numbers(128)
    return Launch(1, 64, x, Out([*x[63::-1], *x[64:]]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> copied;
    __shared__ int near[64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;
    if (t == 0) init(&copied, 64);
    __syncthreads();
    cuda::memcpy_async(&near[t], &x[t], sizeof(int), pipe);  // A
    cuda::pipeline_producer_commit(pipe, copied);  // instead: pipe.producer_commit();
    copied.arrive_and_wait();
    y[t] = near[63 - t];  // B
}
""")
def batch_for_which_a_barrier_waits() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))
