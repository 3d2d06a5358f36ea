// Kernels with known uses of their parameters. Each begins with a line "//// NAME | USES".
// USES: for each pointer its parameter (a number, with the offset in a structure) and none, read, write or both; "?" if
// the kernel may do less, because another pointer may be used instead. "open": the kernel uses other memory too.
// README.md says how the compiled texts beside this file were made.

//// elementwise | 0 read, 1 read, 2 write
extern "C" __global__ void k(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

//// output_first | 0 write, 1 read
extern "C" __global__ void k(float *out, const float *in, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = 2 * in[i];
}

//// in_place | 0 both
extern "C" __global__ void k(float *a, int n) {
    int i = threadIdx.x;
    if (i < n) a[i] = a[i] * a[i];
}

//// axpy | 1 read, 2 both
extern "C" __global__ void k(double alpha, const double *x, double *y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += alpha * x[i];
}

//// swapped_names | 0 read, 1 write
extern "C" __global__ void k(float *out, float *in) { in[threadIdx.x] = out[threadIdx.x]; }

//// constant_that_is_written | 0 write, 1 read
extern "C" __global__ void k(const float *a, float *b) { const_cast<float *>(a)[threadIdx.x] = b[threadIdx.x]; }

//// unused | 0 none, 1 write
extern "C" __global__ void k(float *a, float *b) { b[threadIdx.x] = 1; }

//// all_unused | 0 none, 1 none
extern "C" __global__ void k(float *a, float *b, int n) {}

//// only_reads | 0 read, 1 read
extern "C" __global__ void k(const float *a, const float *b) {
    if (a[threadIdx.x] + b[threadIdx.x] > 1e30f) __trap();
}

//// reduction | 0 read, 1 write
extern "C" __global__ void k(const float *in, float *out, int n) {
    __shared__ float tile[256];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) sum += in[i];
    tile[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}

//// warp_reduction | 0 read, 1 both
extern "C" __global__ void k(const int *in, int *out) {
    int sum = in[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

//// scatter | 0 read, 1 read, 2 write
extern "C" __global__ void k(const float *in, const int *where, float *out) {
    out[where[threadIdx.x]] = in[threadIdx.x];
}

//// gather_with_long_indices | 0 write, 1 read, 2 read
extern "C" __global__ void k(float *out, const long *where, const float *in) {
    out[threadIdx.x] = in[where[threadIdx.x]];
}

//// gather_of_bytes | 0 write, 1 read, 2 read
extern "C" __global__ void k(unsigned char *out, const long *where, const unsigned char *in) {
    out[where[threadIdx.x]] = in[where[threadIdx.x + 32]];
}

//// bytes_at_an_offset | 0 write, 2 read
extern "C" __global__ void k(char *out, size_t n, const char *in, size_t m) {
    out[n] = in[m];
    out[m] = in[n];
}

//// structure | 0+0 write, 0+8 read, 0+24 both
struct S { float *out; const float *in; long n; int *count; };
extern "C" __global__ void k(S s) {
    if (threadIdx.x < s.n) s.out[threadIdx.x] = s.in[threadIdx.x];
    ++*s.count;
}

//// structure_in_structure | 1+8 read, 1+24 write
struct In { int n; const double *data; };
struct Out { short n; double *data; };
struct S { In in; Out out; };
extern "C" __global__ void k(int n, S s) { if (n < s.in.n) s.out.data[n] = s.in.data[n]; }

//// array_of_pointers | 0+0 read, 0+8 read, 0+16 read, 1 write
struct S { const float *in[3]; };
extern "C" __global__ void k(S s, float *out) {
    out[threadIdx.x] = s.in[0][threadIdx.x] + s.in[1][threadIdx.x] + s.in[2][threadIdx.x];
}

//// array_of_pointers_in_a_loop | 0+0 read, 0+8 read, 0+16 read, 0+24 read, 1 write
struct S { const float *in[4]; };
extern "C" __global__ void k(S s, float *out) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) sum += s.in[i][threadIdx.x];
    out[threadIdx.x] = sum;
}

//// array_of_pointers_by_index | 0+0 read?, 0+8 read?, 0+16 read?, 0+24 read?, 1 write, 2 none
struct S { const float *in[4]; };
extern "C" __global__ void k(S s, float *out, float *unused) { out[threadIdx.x] = s.in[blockIdx.x][threadIdx.x]; }

//// packed_structure | 0+1 write, 0+9 read
struct __attribute__((packed)) S { char flag; int *out; const int *in; };
extern "C" __global__ void k(S s) { s.out[threadIdx.x] = s.in[threadIdx.x] + s.flag; }

//// chosen_by_condition | 0 write?, 1 write?, 2 read
extern "C" __global__ void k(float *a, float *b, const float *c, int n) {
    float *to = n > 3 ? a : b;
    to[threadIdx.x] = c[threadIdx.x];
}

//// chosen_in_branches | 0 read?, 1 read?, 2 write
extern "C" __global__ void k(const float *a, const float *b, float *c, int n) {
    const float *from;
    if (n > 3) {
        from = a + n;
        c[1] = 2;
    } else {
        from = b - n;
    }
    c[threadIdx.x] = from[threadIdx.x];
}

//// read_both_written_chosen | 0 both?, 1 both?
extern "C" __global__ void k(float *a, float *b, int n) {
    float sum = a[threadIdx.x] + b[threadIdx.x];
    (n > 3 ? a : b)[threadIdx.x] = sum;
}

//// pointers_that_change_places | 0 both?, 1 both?
extern "C" __global__ void k(float *a, float *b, int n) {
    for (int i = 0; i < n; ++i) {
        b[threadIdx.x] = a[threadIdx.x + 1];
        __syncthreads();
        float *other = a;
        a = b;
        b = other;
    }
}

//// moving_pointers | 0 read, 1 write
extern "C" __global__ void k(const float *a, float *b, int n) {
    const float *end = a + n;
    a += threadIdx.x;
    b += threadIdx.x;
    while (a < end) {
        *b = *a;
        a += blockDim.x;
        b += blockDim.x;
    }
}

//// difference_of_pointers | 0 both, 1 none, 2 read
extern "C" __global__ void k(int *a, const int *start, const int *b) { a[b - start] = a[threadIdx.x]; if (b[0] == 7) a[0] = 3; }

//// pointer_rebased | 0 read, 1 write, 2 none
extern "C" __global__ void k(const char *a, char *b, const char *base) {
    const char *from = a + (threadIdx.x * 4L);
    b[from - a] = *from;
}

//// aligned_down | 0 read, 1 write
extern "C" __global__ void k(const int *a, int *b, long n) {
    auto address = reinterpret_cast<size_t>(a + n) & ~size_t(127);
    b[threadIdx.x] = reinterpret_cast<const int *>(address)[threadIdx.x];
}

//// tagged | 0 both, 1 write
extern "C" __global__ void k(int *a, int *b) {
    auto tagged = reinterpret_cast<size_t>(a) | 1;
    if (threadIdx.x > 3) tagged ^= 1;
    int *plain = reinterpret_cast<int *>(tagged & ~size_t(1));
    *b = (*plain)++;
}

//// from_halves | 0 read, 2 write
extern "C" __global__ void k(unsigned a_low, unsigned a_high, int *b) {
    auto a = reinterpret_cast<const int *>(static_cast<size_t>(a_high) << 32 | a_low);
    b[threadIdx.x] = a[threadIdx.x];
}

//// halves_of_a_pointer | 0 read, 1 write
extern "C" __global__ void k(const int *a, int *b) {
    auto address = reinterpret_cast<size_t>(a);
    unsigned low = address, high = address >> 32;
    low = __shfl_sync(~0u, low, 0);
    high = __shfl_sync(~0u, high, 0);
    b[threadIdx.x] = reinterpret_cast<const int *>(static_cast<size_t>(high) << 32 | low)[threadIdx.x];
}

//// inline_assembly | 0 read, 1 write
extern "C" __global__ void k(const int *a, int *b) {
    int value;
    asm volatile("{ .reg .u64 t<2>; cvta.to.global.u64 t0, %1; add.u64 t1, t0, 16; ld.global.cg.s32 %0, [t1]; }"
                 : "=r"(value) : "l"(a) : "memory");
    asm volatile("{ .reg .u64 t<2>; add.u64 t1, %1, 16; st.wb.s32 [t1+-8], %0; }" :: "r"(value), "l"(b) : "memory");
}

//// called_function | 0 write, 1 read
__device__ __noinline__ float load(const float *p, int i) { return p[i]; }
__device__ __noinline__ void save(float *p, int i, float value) { p[i] = value; }
extern "C" __global__ void k(float *a, const float *b) { save(a, threadIdx.x, load(b, threadIdx.x)); }

//// function_called_both_ways | 0 both, 1 both, 2 read
__device__ __noinline__ void move(float *to, const float *from, int i) { to[i] = from[i]; }
extern "C" __global__ void k(float *a, float *b, const float *c) {
    move(a, c, threadIdx.x);
    move(b, a, threadIdx.x + 1);
    move(a, b, threadIdx.x + 2);
}

//// function_called_with_a_spare | 0 write, 1 read, 2 none
__device__ __noinline__ void move(float *to, const float *from, float *spare) { *to = *from; if (spare == to) __trap(); }
extern "C" __global__ void k(float *a, const float *b, float *c) { move(a, b, c); }

//// function_that_returns_a_pointer | 0 read?, 1 read?, 2 write
__device__ __noinline__ const float *chosen(const float *a, const float *b, int n) { return n > 3 ? a + n : b; }
extern "C" __global__ void k(const float *a, const float *b, float *c, int n) { c[threadIdx.x] = *chosen(a, b, n); }

//// function_that_returns_a_structure | 0 read, 1 write
struct Pair { const float *from; float *to; };
__device__ __noinline__ Pair pair_of(const float *a, float *b, int i) { return {a + i, b + 2 * i}; }
extern "C" __global__ void k(const float *a, float *b) {
    Pair pair = pair_of(a, b, threadIdx.x);
    *pair.to = *pair.from;
}

//// function_of_a_structure | 0+0 write, 0+8 read
struct S { float *to; const float *from; int n; };
__device__ __noinline__ void move(S s, int i) { if (i < s.n) s.to[i] = s.from[i]; }
extern "C" __global__ void k(S s) { move(s, threadIdx.x); }

//// function_of_references | 0 write, 1 read
__device__ __noinline__ void advance(float *&to, const float *&from, int step) { to += step; from += step; }
extern "C" __global__ void k(float *a, const float *b, int n) {
    for (int i = 0; i < n; ++i) {
        *a = *b;
        advance(a, b, blockDim.x);
    }
}

//// nested_functions | 0 write, 1 both, 2 read
__device__ __noinline__ void inner(int *a, const int *b) { *a = *b; }
__device__ __noinline__ void outer(int *a, int *b, const int *c) { inner(a, b); inner(b, c); }
extern "C" __global__ void k(int *a, int *b, const int *c) { outer(a + threadIdx.x, b, c); }

//// recursion | 0 read, 1 write
__device__ __noinline__ int sum(const int *a, int n) { return n <= 0 ? 0 : a[n] + sum(a, n - 1) * sum(a, n / 2); }
extern "C" __global__ void k(const int *a, int *b, int n) { *b = sum(a, n); }

//// mutual_recursion_with_exchange | 0 both?, 1 both?
__device__ int odd(int *a, int *b, int n);
__device__ __noinline__ int even(int *a, int *b, int n) { if (n == 0) return *a; return odd(b, a, n - 1) + 1; }
__device__ __noinline__ int odd(int *a, int *b, int n) { if (n == 0) { *a = 1; return 0; } return even(a, b, n - 1) * 3; }
extern "C" __global__ void k(int *a, int *b, int n) { if (even(a, b, n) > 100) __trap(); }

//// atomics | 0 both, 1 both, 2 both, 3 both, 4 both, 5 both
extern "C" __global__ void k(int *a, unsigned *b, float *c, double *d, unsigned long long *e, unsigned long long *f) {
    atomicMax(a, 3);
    atomicInc(b, 7);
    atomicAdd(c, 1.0f);
    atomicAdd(d, 1.0);
    atomicCAS(e, 1ull, 2ull);
    atomicExch(f, 5ull);
}

//// atomic_with_result | 0 both, 1 write
extern "C" __global__ void k(int *count, int *out) { out[atomicAdd(count, 1)] = threadIdx.x; }

//// compare_and_swap_loop | 0 both, 1 read
extern "C" __global__ void k(double *a, const double *b) {
    auto where = reinterpret_cast<unsigned long long *>(a);
    unsigned long long old = *where, seen;
    do {
        seen = old;
        old = atomicCAS(where, seen, __double_as_longlong(fmax(__longlong_as_double(seen), *b)));
    } while (seen != old);
}

//// histogram | 0 read, 1 both
extern "C" __global__ void k(const unsigned char *in, unsigned *counts, size_t n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1u);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

//// scan | 0 read, 1 write, 2 write
extern "C" __global__ void k(const int *in, int *out, int *sums, int n) {
    extern __shared__ int tile[];
    int i = threadIdx.x;
    tile[i] = i < n ? in[blockIdx.x * blockDim.x + i] : 0;
    for (int step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        int before = i >= step ? tile[i - step] : 0;
        __syncthreads();
        tile[i] += before;
    }
    out[blockIdx.x * blockDim.x + i] = tile[i];
    if (i == blockDim.x - 1) sums[blockIdx.x] = tile[i];
}

//// matrix_product | 0 read, 1 read, 2 write
extern "C" __global__ void k(const float *a, const float *b, float *c, int n) {
    __shared__ float left[16][16], right[16][17];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int at = 0; at < n; at += 16) {
        left[y][x] = a[row * n + at + x];
        right[y][x] = b[(at + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

//// stencil | 0 read, 1 write
extern "C" __global__ void k(const double *in, double *out, int width, int height, long pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= width - 1 || y >= height - 1) return;
    const char *row = reinterpret_cast<const char *>(in) + y * pitch;
    auto at = [&](int dx, int dy) { return reinterpret_cast<const double *>(row + dy * pitch)[x + dx]; };
    reinterpret_cast<double *>(reinterpret_cast<char *>(out) + y * pitch)[x] = at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4 * at(0, 0);
}

//// transposition | 0 read, 1 write
extern "C" __global__ void k(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

//// vector_loads | 0 read, 1 write
extern "C" __global__ void k(const float4 *a, double2 *b) {
    float4 v = a[threadIdx.x];
    b[threadIdx.x] = make_double2(v.x + v.y, v.z + v.w);
}

//// half | 0 read, 1 write, 2 both
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *a, __half2 *b, __half *c) {
    __half x = a[threadIdx.x];
    b[threadIdx.x] = __halves2half2(x, __hmul(x, x));
    atomicAdd(c, x);
}

//// bfloat16 | 0 read, 1 both
#include <cuda_bf16.h>
extern "C" __global__ void k(const __nv_bfloat16 *a, __nv_bfloat16 *b) { b[threadIdx.x] = __float2bfloat16(__bfloat162float(a[threadIdx.x]) + __bfloat162float(b[threadIdx.x])); }

//// read_only_loads | 0 read, 1 read, 2 write
extern "C" __global__ void k(const float *__restrict__ a, const float *b, float *__restrict__ c) {
    c[threadIdx.x] = a[threadIdx.x] + __ldg(b + threadIdx.x) + __ldcs(b + threadIdx.x + 5);
}

//// streaming_stores | 0 write, 1 write, 2 read
extern "C" __global__ void k(float *a, float *b, const float *c) {
    __stcs(a + threadIdx.x, __ldcg(c));
    __stwt(b + threadIdx.x, 2.0f);
}

//// volatile_flag | 0 read, 1 write, 2 read
extern "C" __global__ void k(volatile int *flag, volatile float *out, const float *in) {
    while (*flag == 0) {}
    out[threadIdx.x] = in[threadIdx.x];
}

//// acquire_and_release | 0 read, 1 write, 2 both
#include <cuda/atomic>
extern "C" __global__ void k(int *a, int *b, int *c) {
    int value = cuda::atomic_ref<int, cuda::thread_scope_device>(*a).load(cuda::memory_order_acquire);
    cuda::atomic_ref<int, cuda::thread_scope_system>(*b).store(value, cuda::memory_order_release);
    cuda::atomic_ref<int, cuda::thread_scope_device>(*c).fetch_or(value, cuda::memory_order_acq_rel);
}

//// asynchronous_copies | 0 read, 1 write
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ float4 tile[128];
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(&tile[threadIdx.x])), "l"(&in[blockIdx.x * 128 + threadIdx.x]));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
#else
    tile[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
#endif
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = tile[127 - threadIdx.x];
}

//// asynchronous_table_of_pointers | 0 read, 1 none | open
extern "C" __global__ void k(float *const *table, float *b) {
    __shared__ float *tile[128];
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((unsigned)__cvta_generic_to_shared(&tile[threadIdx.x])), "l"(&table[threadIdx.x]));
    asm volatile("cp.async.wait_all;");
#else
    tile[threadIdx.x] = table[threadIdx.x];
#endif
    __syncthreads();
    *tile[127 - threadIdx.x] = 1;
}

//// grid_synchronization | 0 both, 1 write
#include <cooperative_groups.h>
extern "C" __global__ void k(float *a, float *b) {
    a[threadIdx.x] = 3;
    cooperative_groups::this_grid().sync();
    b[threadIdx.x] = a[blockIdx.x];
}

//// wmma | 0 read, 1 read, 2 both
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const half *a, const half *b, float *c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

//// wmma_through_shared_memory | 0 read, 1 write
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const half *a, float *c) {
    __shared__ half tile[256];
    for (int i = threadIdx.x; i < 256; i += 32) tile[i] = a[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(left, tile, 16);
    wmma::load_matrix_sync(right, tile, 16);
    wmma::fill_fragment(sum, 0);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

//// local_array_of_pointers | 0 read?, 1 read?, 2 read?, 3 write
extern "C" __global__ void k(const float *a, const float *b, const float *c, float *out, int n) {
    const float *table[3] = {a, b, c};
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += table[(i * 7 + n) % 3][threadIdx.x];
    out[threadIdx.x] = sum;
}

//// local_array_given_to_a_function | 0 read?, 1 read?, 2 write
__device__ __noinline__ float load(const float *const *table, int i) { return *table[i]; }
extern "C" __global__ void k(const float *a, const float *b, float *out, int n) {
    const float *table[2] = {a, b};
    *out = load(table, n);
}

//// local_array_filled_by_a_function | 0 both?, 1 both?
__device__ __noinline__ void fill(float **table, float *p, int i) { table[i] = p; }
extern "C" __global__ void k(float *a, float *b, int n) {
    float *table[4] = {a, a, a, a};
    fill(table, b, n);
    *table[n + 1] += 1;
}

//// pointers_through_shared_memory | 0 write?, 1 write?
extern "C" __global__ void k(float *a, float *b) {
    __shared__ float *table[64];
    table[threadIdx.x] = threadIdx.x % 2 ? a : b;
    __syncthreads();
    *table[63 - threadIdx.x] = 1;
}

//// one_pointer_through_shared_memory | 0 write, 1 read
extern "C" __global__ void k(float *a, const float *b) {
    __shared__ float *to;
    __shared__ const float *from;
    if (threadIdx.x == 0) { to = a + blockIdx.x * 64; from = b + blockIdx.x * 64; }
    __syncthreads();
    to[threadIdx.x] = from[threadIdx.x];
}

//// pointers_through_dynamic_shared_memory | 0 both?, 1 both?
extern "C" __global__ void k(float *a, float *b) {
    extern __shared__ char memory[];
    auto table = reinterpret_cast<float **>(memory);
    if (threadIdx.x == 0) { table[0] = a; table[1] = b; }
    __syncthreads();
    *table[threadIdx.x & 1] += 2;
}

//// table_of_pointers | 0 read, 1 read | open
extern "C" __global__ void k(float *const *table, const float *b) { table[blockIdx.x][threadIdx.x] = b[threadIdx.x]; }

//// table_of_tables | 0 read, 1 write | open
extern "C" __global__ void k(const float *const *const *table, float *b) { *b = table[3][blockIdx.x][threadIdx.x]; }

//// structure_behind_a_pointer | 0 read | open
struct S { float *out; const float *in; };
extern "C" __global__ void k(const S *s) { s->out[threadIdx.x] = s->in[threadIdx.x]; }

//// linked_list | 0 read?, 1 both | open
struct Node { Node *next; int value; };
extern "C" __global__ void k(const Node *node, int *sum) { for (; node != nullptr; node = node->next) *sum += node->value; }

//// function_pointer | 0 both?, 1 both?, 2 write | open
typedef void (*Function)(float *, const float *);
__device__ __noinline__ void first(float *a, const float *b) { *a = *b; }
__device__ __noinline__ void second(float *a, const float *b) { *a = 2 * *b; }
__device__ Function table[2] = {first, second};
extern "C" __global__ void k(float *a, const float *b, float *c, int n) {
    c[threadIdx.x] = 1;
    table[n](a, b);
}

//// virtual_function | 0 both?, 1 write | open
struct Base { __device__ virtual void go(float *a) = 0; };
struct One : Base { __device__ void go(float *a) override { *a = 1; } };
struct Two : Base { __device__ void go(float *a) override { *a *= 2; } };
extern "C" __global__ void k(float *a, float *b, int n) {
    One one;
    Two two;
    Base *base = n > 3 ? static_cast<Base *>(&one) : &two;
    *b = 1;
    base->go(a);
}

//// constant_memory | 0 write
__constant__ float factors[64];
extern "C" __global__ void k(float *a, int n) { a[threadIdx.x] = factors[n] * factors[threadIdx.x]; }

//// variables_of_the_module | 0 read, 1 write
__device__ float table[256];
__device__ int counter;
extern "C" __global__ void k(const float *a, float *b, int n) {
    int at = atomicAdd(&counter, 1) & 255;
    table[at] = a[at];
    b[threadIdx.x] = table[(n + threadIdx.x) & 255];
}

//// pointer_in_a_variable | 0 none, 1 write | open
__device__ float *kept;
extern "C" __global__ void k(float *a, float *b) { kept = a; b[threadIdx.x] = 1; }

//// pointer_from_a_variable | 0 read | open
__device__ float *kept;
extern "C" __global__ void k(const float *a) { kept[threadIdx.x] = a[threadIdx.x]; }

//// pointer_from_constant_memory | 0 write | open
__constant__ struct { const float *data; int n; } constants;
extern "C" __global__ void k(float *a) { if (threadIdx.x < constants.n) a[threadIdx.x] = constants.data[threadIdx.x]; }

//// print | 0 read, 1 write
#include <stdio.h>
extern "C" __global__ void k(const float *a, float *b) {
    printf("%f %p\n", a[threadIdx.x], b);
    b[0] = 1;
}

//// assertion | 0 read, 1 write
#include <assert.h>
extern "C" __global__ void k(const int *a, int *b) {
    assert(a[threadIdx.x] > 0);
    b[threadIdx.x] = 5;
}

//// memory_of_malloc | 0 read, 1 write
extern "C" __global__ void k(const int *a, int *b, int n) {
    int *own = static_cast<int *>(malloc(n * sizeof(int)));
    for (int i = 0; i < n; ++i) own[i] = a[i];
    b[threadIdx.x] = own[n / 2];
    free(own);
}

//// memory_functions | 0 write, 1 read, 2 write
extern "C" __global__ void k(char *a, const char *b, int *c, int n) {
    memcpy(a, b, n);
    memset(c, 0, 256);
}

//// copies_of_structures | 0 write, 1 read
struct Large { double values[12]; };
extern "C" __global__ void k(Large *a, const Large *b) { a[threadIdx.x] = b[threadIdx.x]; }

//// pairs_of_members | 0+0 both, 0+16 none, 1 write
struct Iterator { float *at; long stride; const float *end; };
extern "C" __global__ void k(Iterator i, int *steps) {
    int count = 0;
    for (float *at = i.at; at < i.end; at += i.stride, ++count) *at = *at + 1;
    *steps = count;
}

//// transforming_iterator | 0+0 read, 0+16 read, 1+0 write
template <class T> struct Counting { T at; __device__ T operator[](long i) const { return at + i; } };
template <class P, class I> struct Permutation { P data; long offset; I index; __device__ auto operator[](long i) const { return data[index[i] + offset]; } };
template <class I> struct Squared { I from; __device__ auto operator[](long i) const { auto x = from[i]; return x * x; } };
template <class F, class T> __device__ void transform(F from, T to, long n) {
    for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to.from[i] = from[i] + Counting<int>{3}[i];
}
extern "C" __global__ void k(Squared<Permutation<const float *, const int *>> from, Squared<float *> to, long n) { transform(from, to, n); }

//// compared_only | 0 none, 1 none, 2 write
extern "C" __global__ void k(const float *a, const float *b, int *out) { *out = a < b ? 1 : a == b ? 2 : 3; }

//// address_as_a_number | 0 none, 1 write
extern "C" __global__ void k(const float *a, unsigned long long *out) { *out = reinterpret_cast<unsigned long long>(a) / 16 % 7; }

//// hashed_address | 0 read, 1 write
extern "C" __global__ void k(const int *a, int *out) { out[(reinterpret_cast<size_t>(a) >> 4) * 2654435761u % 64] = a[0]; }

//// null_if_absent | 0 read, 1 write
extern "C" __global__ void k(const float *a, float *out, int n) {
    const float *from = n > 3 ? a : nullptr;
    out[threadIdx.x] = from != nullptr ? from[threadIdx.x] : 0.f;
}

//// prefetch | 0 none, 1 write
extern "C" __global__ void k(const float *a, float *b) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(a + threadIdx.x));
    b[threadIdx.x] = 1;
}

//// address_in_the_parameters | 0+0 write?, 0+8 write?, 1 none
struct S { int *out[2]; };
extern "C" __global__ void k(const __grid_constant__ S s, int *unused) {
    auto words = reinterpret_cast<int *const *>(&s);
    *words[threadIdx.x & 1] = 7;
}

//// structure_written_first | 0+0 write, 0+8 none, 1 read
struct S { float *out; float *spare; };
extern "C" __global__ void k(S s, const float *in, int n) {
    s.spare = s.out + n;
    s.spare[threadIdx.x] = in[threadIdx.x];
}

//// variable_used_twice | 0 write, 1 read
extern "C" __global__ void k(float *a, const float *b) {
    const float *p = b;
    float value = p[threadIdx.x];
    p = a;
    const_cast<float *>(p)[threadIdx.x] = value;
}

//// late_write | 0 both, 1 read
extern "C" __global__ void k(unsigned *a, const unsigned *b, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] ^ b[i];
    if (sum == 0xDEADBEEF) asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; @!p red.global.add.u32 [%0], 1; }" ::"l"(a), "r"(n));
}

//// many_parameters | 0 read, 3 read, 4 write, 6 read, 9 write, 11 both
extern "C" __global__ void k(const char *a, char n, short m, const short *b, int *c, float f, const long *d, double g, char l, char *e, char o, short *h) {
    c[threadIdx.x] = a[n] + b[m] + d[l];
    e[threadIdx.x] = h[o]++ + f + g;
}

//// cupy_elementwise | 0+0 read, 1+0 read, 2+0 write
#include <cupy/carray.cuh>
extern "C" __global__ void k(const CArray<float, 1, true, true> x, const CArray<float, 1, true, true> y, CArray<float, 1, true, true> z, CIndexer<1, true> _ind) {
  #pragma unroll 1
  CUPY_FOR(i, _ind.size()) {
    _ind.set(i);
    const float &in0 = x[_ind.get()];
    const float &in1 = y[_ind.get()];
    float &out0 = z[_ind.get()];
    out0 = in0 + in1;
  }
}

//// cupy_elementwise_in_place | 0+0 both, 1+0 read
#include <cupy/carray.cuh>
extern "C" __global__ void k(CArray<double, 3, false, false> x, const CArray<double, 3, false, false> y, CIndexer<3, false> _ind) {
  CUPY_FOR(i, _ind.size()) {
    _ind.set(i);
    double &out0 = x[_ind.get()];
    const double &in0 = y[_ind.get()];
    out0 += in0;
  }
}

//// cupy_elementwise_of_bytes | 0+0 read, 1+0 read, 2+0 write
#include <cupy/carray.cuh>
extern "C" __global__ void k(const CArray<signed char, 2, false, false> x, const CArray<bool, 2, false, false> y, CArray<char, 2, false, false> z, CIndexer<2, false> _ind) {
  CUPY_FOR(i, _ind.size()) {
    _ind.set(i);
    if (y[_ind.get()]) z[_ind.get()] = x[_ind.get()];
  }
}

//// cupy_take | 0+0 read, 1+0 read, 6+0 write
#include <cupy/carray.cuh>
extern "C" __global__ void k(const CArray<float, 2, true, false> a, const CArray<long long, 1, true, false> _raw_indices, const long long ldim_, const long long cdim_, const long long rdim_, const long long index_range_, CArray<float, 1, true, false> _raw_out, CIndexer<1, false> _ind) {
  CUPY_FOR(i, _ind.size()) {
    _ind.set(i);
    const long long &indices = _raw_indices[_ind.get()];
    float &out = _raw_out[_ind.get()];
    using idx_t = decltype(a)::index_t;
    idx_t index_range = static_cast<idx_t>(index_range_);
    idx_t ldim = static_cast<idx_t>(ldim_);
    idx_t cdim = static_cast<idx_t>(cdim_);
    idx_t rdim = static_cast<idx_t>(rdim_);
    ptrdiff_t out_i = indices % index_range;
    if (out_i < 0) out_i += index_range;
    if (ldim != 1) out_i += (i / (cdim * rdim)) * index_range;
    if (rdim != 1) out_i = out_i * rdim + i % rdim;
    out = a[out_i];
  }
}

//// cupy_scatter_add | 0+0 read, 1+0 read, 3+0 both
#include <cupy/carray.cuh>
extern "C" __global__ void k(const CArray<float, 1, false, false> _raw_v, const CArray<long long, 1, false, false> _raw_i, long long n, CArray<float, 2, false, false> a, CIndexer<1, false> _ind) {
  CUPY_FOR(i, _ind.size()) {
    _ind.set(i);
    const float &v = _raw_v[_ind.get()];
    const long long &at = _raw_i[_ind.get()];
    ptrdiff_t where[] = {at, (ptrdiff_t)i % n};
    atomicAdd(&a[where], v);
  }
}

//// cupy_reduction | 0+0 read, 1+0 write
#include <cupy/carray.cuh>
#define REDUCE(a, b) (a + b)
#define POST_MAP(a) (out0 = a)
#define _REDUCE(_offset) if (_tid < _offset) { _type_reduce _a = _sdata[_tid], _b = _sdata[(_tid + _offset)]; _sdata[_tid] = REDUCE(_a, _b); }
typedef float _type_reduce;
typedef ptrdiff_t IndexT;
extern "C" __global__ void k(const CArray<float, 2, false, false> _raw_in0, CArray<float, 1, true, false> _raw_out0, CIndexer<2, false> _in_ind, CIndexer<1, false> _out_ind, const int _block_stride) {
  __shared__ char _sdata_raw[512 * sizeof(_type_reduce)];
  _type_reduce *_sdata = reinterpret_cast<_type_reduce*>(_sdata_raw);
  unsigned int _tid = threadIdx.x;
  IndexT _J_offset = _tid >> __popc(_block_stride - 1);
  ptrdiff_t _j_offset = (ptrdiff_t)_J_offset * _out_ind.size();
  IndexT _J_stride = 512 >> __popc(_block_stride - 1);
  ptrdiff_t _j_stride = (ptrdiff_t)_J_stride * _out_ind.size();
  for (ptrdiff_t _i_base = (ptrdiff_t)blockIdx.x * _block_stride; _i_base < _out_ind.size(); _i_base += (ptrdiff_t)gridDim.x * _block_stride) {
    _type_reduce _s = _type_reduce(0);
    ptrdiff_t _i = _i_base + (_tid & (_block_stride - 1));
    IndexT _J = _J_offset;
    for (ptrdiff_t _j = _i + _j_offset; _j < _in_ind.size(); _j += _j_stride, _J += _J_stride) {
      _in_ind.set(_j);
      const float in0 = _raw_in0[_in_ind.get()];
      _type_reduce _a = static_cast<_type_reduce>(in0);
      _s = REDUCE(_s, _a);
    }
    _sdata[_tid] = _s;
    __syncthreads();
    for (unsigned int _block = 512 / 2; _block >= _block_stride; _block >>= 1) {
      if (_tid < _block) { _REDUCE(_block); }
      __syncthreads();
    }
    if (_tid < _block_stride) _s = _sdata[_tid];
    if (_tid < _block_stride && _i < _out_ind.size()) {
      _out_ind.set(static_cast<ptrdiff_t>(_i));
      float &out0 = _raw_out0[_out_ind.get()];
      POST_MAP(_s);
    }
  }
}

//// cupy_raw_arrays | 0+0 read, 1+0 both
#include <cupy/carray.cuh>
extern "C" __global__ void k(const CArray<float, 3, false, true> x, CArray<float, 2, false, true> y, CIndexer<2, true> _ind) {
  CUPY_FOR(i, _ind.size()) {
    _ind.set(i);
    float sum = 0;
    for (int at = 0; at < x.shape()[2]; ++at) {
      int where[] = {(int)_ind.get()[0], (int)_ind.get()[1], at};
      sum += x[where];
    }
    y[_ind.get()] = y[_ind.get()] * sum;
  }
}

//// cub_block_reduction | 0 read, 1 write
#include <cub/block/block_load.cuh>
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k(const float *in, float *out) {
    using Reduction = cub::BlockReduce<float, 128>;
    using Load = cub::BlockLoad<float, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    __shared__ union { typename Reduction::TempStorage reduction; typename Load::TempStorage load; } memory;
    float items[4];
    Load(memory.load).Load(in + blockIdx.x * 512, items);
    __syncthreads();
    float sum = Reduction(memory.reduction).Sum(items);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

//// cub_block_scan | 0 both, 1 write
#include <cub/block/block_scan.cuh>
extern "C" __global__ void k(int *a, int *total) {
    using Scan = cub::BlockScan<int, 256>;
    __shared__ typename Scan::TempStorage memory;
    int value = a[blockIdx.x * 256 + threadIdx.x], sum;
    Scan(memory).InclusiveSum(value, value, sum);
    a[blockIdx.x * 256 + threadIdx.x] = value;
    if (threadIdx.x == 0) total[blockIdx.x] = sum;
}

//// cub_block_sort | 0 both, 1 read, 2 write
#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void k(unsigned *keys, const int *in, int *out) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 2, int>;
    __shared__ typename Sort::TempStorage memory;
    unsigned own[2];
    int values[2];
    for (int i = 0; i < 2; ++i) { own[i] = keys[threadIdx.x * 2 + i]; values[i] = in[threadIdx.x * 2 + i]; }
    Sort(memory).Sort(own, values);
    for (int i = 0; i < 2; ++i) { keys[threadIdx.x * 2 + i] = own[i]; out[threadIdx.x * 2 + i] = values[i]; }
}
