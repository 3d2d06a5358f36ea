"""Barriers of libcu++, at which threads arrive and wait in two steps, and copies for which a barrier waits.

After the chapters on asynchronous barriers and asynchronous data copies of the CUDA C++ Programming Guide, and the
documentation of libcu++.
"""

from __future__ import annotations

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ int near[64];
    int t = threadIdx.x;
    if (t == 0) init(&all, blockDim.x);  // A(init)
    __syncthreads();  // missing barrier (init): ;
    near[t] = x[t];  // A(wait)
    auto token = all.arrive();  // B(init)
    int own = x[t] * 2;
    all.wait(static_cast<decltype(token)&&>(token));  // missing barrier (wait): ;
    y[t] = own + near[63 - t];  // B(wait)
}
""")
def work_between_arrival_and_wait() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(2 * x + x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ int part[64];
    int t = threadIdx.x;
    if (t == 0) init(&all, blockDim.x);
    part[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];  // A B
        if (half > 1) all.arrive_and_wait();  // missing warp barrier: if (half > 2) all.arrive_and_wait();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
""")
def sum_with_a_phase_for_each_level() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(x.reshape(2, 64).sum(1)))


@program(r"""
__global__ void KERNEL(const int* x, int* sums) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ Barrier free, full;
    __shared__ int buffer[32];
    int lane = threadIdx.x % 32, sum = 0;
    if (threadIdx.x == 0) init(&free, 64);
    if (threadIdx.x == 0) init(&full, 64);
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < 4; i++) {
            free.arrive_and_wait(), buffer[lane] = x[i * 32 + lane];  // A
            // missing barrier (free): buffer[lane] = x[i * 32 + lane], free.arrive_and_wait();
            (void)full.arrive();
        }
    } else {
        (void)free.arrive();
        for (int i = 0; i < 4; i++) {
            full.arrive_and_wait(), sum += buffer[31 - lane];  // B
            // missing barrier (full): sum += buffer[31 - lane], full.arrive_and_wait();
            if (i < 3) (void)free.arrive();
        }
        sums[lane] = sum;
    }
}
""")
def producer_and_consumer() -> Launch:
    x = numbers(128)
    return Launch(1, 64, x, Out(x.reshape(4, 32)[:, ::-1].sum(0)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> some;
    __shared__ int near[64];
    int t = threadIdx.x;
    if (t == 0) init(&some, blockDim.x);
    __syncthreads();
    near[t] = x[t];  // A(first)
    if (t >= 32) {
        some.arrive_and_drop();
        return;
    }
    some.arrive_and_wait(), near[t] += near[63 - t];  // B(first) A(second)
    // missing barrier (first): near[t] += near[63 - t], some.arrive_and_wait();
    some.arrive_and_wait();  // missing warp barrier (second): (void)some.arrive();
    y[t] = near[31 - t];  // B(second)
}
""")
def threads_that_leave() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out((x[:32] + x[63:31:-1])[::-1]))


@program(r"""
struct KERNEL_Add {
    int *part, *total;
    __device__ void operator()() const {
        for (int i = 0; i < 64; i++) *total += part[i];  // A
    }
};
__global__ void KERNEL(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block, KERNEL_Add> all;
    __shared__ int part[64];
    __shared__ int total;
    int t = threadIdx.x;
    if (t == 0) total = 0;
    if (t == 0) init(&all, blockDim.x, KERNEL_Add{part, &total});
    __syncthreads();
    part[t] = x[t];
    all.arrive_and_wait();  // missing barrier: (void)all.arrive();
    y[t] = total - x[t];  // B
}
""")
def sum_at_the_end_of_a_phase() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x.sum() - x))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> copied;
    __shared__ int near[64];
    int t = threadIdx.x;
    if (t == 0) init(&copied, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&near[t], &x[t], sizeof(int), copied);  // A
    copied.arrive_and_wait();  // missing barrier (arrival): (void)copied.arrive();
    y[t] = near[63 - t];  // B
}
""")
def copies_of_threads() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    namespace cg = cooperative_groups;
    __shared__ cuda::barrier<cuda::thread_scope_block> copied;
    __shared__ __align__(16) int near[64];
    auto block = cg::this_thread_block();
    int t = threadIdx.x;
    if (t == 0) init(&copied, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(block, near, x, cuda::aligned_size_t<16>(sizeof near), copied);  // A
    copied.arrive_and_wait();  // instead: __syncthreads();
    y[t] = near[63 - t];  // B
}
""")
def copy_for_which_a_barrier_waits() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1]))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> copied[2];
    __shared__ int stage[2][32];
    int t = threadIdx.x, sum = 0;
    if (t < 2) init(&copied[t], 32);
    __syncthreads();
    cuda::memcpy_async(&stage[0][t], &x[t], sizeof(int), copied[0]);
    for (int i = 0; i < 4; i++) {
        int next = (i + 1) % 2;
        if (i < 3) cuda::memcpy_async(&stage[next][t], &x[32 * (i + 1) + t], sizeof(int), copied[next]);  // A
        copied[i % 2].arrive_and_wait();
        sum += stage[i % 2][31 - t];  // B
        __syncthreads();  // missing warp barrier: ;
    }
    y[t] = sum;
}
""")
def two_stages_with_barriers() -> Launch:
    x = numbers(128)
    return Launch(1, 32, x, Out(x.reshape(4, 32)[:, ::-1].sum(0)))
