// Kernels whose use of memory is known. tests/support/sass_truths.py says what each does.
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cassert>
#include <cstdio>
#include <mma.h>
#if defined(NEW)
#include <cuda/ptx>
#endif

#define KERNEL extern "C" __global__ void
#define AWAY __device__ __noinline__
typedef unsigned char byte;

__device__ __forceinline__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

KERNEL copy(float *out, const float *in, int n) {
    if (index() < n)
        out[index()] = in[index()];
}
KERNEL axpy(float *y, const float *x, float a, int n) {
#pragma unroll 1
    for (int i = index(); i < n; i += gridDim.x * blockDim.x)
        y[i] += a * x[i];
}
KERNEL histogram(const int *in, unsigned *bins, int n) {
    if (index() < n)
        atomicAdd(bins + in[index()], 1u);
}
KERNEL exchanges(int *a, int *b, int *c, int *d) {
    a[index()] = atomicExch(b, 1);
    atomicMax(c, 3);
    atomicCAS(d, 1, 2);
}
KERNEL pick(float *a, float *b, const float *in, int which, int n) {
    float *out = which ? a : b;
#pragma unroll 1
    for (int i = 0; i < n; i++)
        out[i] = in[i];
}
struct Pair {
    float *out;
    int n;
    const float *in;
};
KERNEL members(Pair pair) {
#pragma unroll 1
    for (int i = threadIdx.x; i < pair.n; i += 32)
        pair.out[i] = pair.in[i];
}
KERNEL pointer_array(float **rows, int n) {
    if (index() < n)
        rows[index()][threadIdx.x] = 1;
}
AWAY void put(float *p, float value) { p[threadIdx.x] = value; }
AWAY float get(const float *p) { return p[threadIdx.x] + 1; }
KERNEL called(float *a, const float *b) { put(a, b[3]); }
KERNEL called_often(float *a, const float *b, float *c, const float *d) {
    put(a, get(b));
    put(c, get(d));
}
KERNEL local_array(float *a, float *b, int i) {
    float *both[2] = {a, b};
    both[i][threadIdx.x] = 3;
}
struct Table {
    float *rows[8];
};
KERNEL pointer_table(Table table, const float *in) { table.rows[blockIdx.x][threadIdx.x] = in[threadIdx.x]; }
KERNEL walk(float *out, const float *in, int n) {
#pragma unroll 1
    while (n-- > 0) {
        *out++ = *in;
        in += 2;
    }
}
KERNEL cases(float *a, const float *b, float *c, const float *d, int which, int n) {
    const int i = threadIdx.x;
    switch (which) {
    case 0: a[i] = 1; break;
    case 1: a[i] = b[i]; break;
    case 2: c[i] = __sinf(d[i]) / 3; break;
    case 3: a[i] = d[i] + 7; break;
    case 4: c[i] = n / (i + 1); break;
    case 5: c[i] = b[i + n]; break;
    case 6: a[i + n] = d[i]; __syncthreads(); break;
    case 7: a[n] = d[i] * b[i]; break;
    }
}
KERNEL prints(const float *a) { printf("%f\n", a[0]); }
KERNEL asserts(float *a, const int *indices, int n) {
    const int i = indices[threadIdx.x];
    assert(i < n);
    a[i] = 1;
}
__device__ int counter;
__device__ float *elsewhere;
KERNEL variable(float *a) { a[atomicAdd(&counter, 1)] = 2; }
KERNEL pointer_variable(const float *a) { elsewhere[threadIdx.x] = a[threadIdx.x]; }
KERNEL long_division(long *out, const long *in, long n) {
    out[threadIdx.x] = in[threadIdx.x] / n;
    out[threadIdx.x + 1000] = in[threadIdx.x] % (n + 1);
}
KERNEL shared_pointers(float *a, float *b) {
    __shared__ float *both[2];
    if (threadIdx.x < 2)
        both[threadIdx.x] = threadIdx.x ? a : b;
    __syncthreads();
    both[blockIdx.x][threadIdx.x] = 1;
}
KERNEL byte_lookup(const int *indices, const byte *table, byte *out) {
    out[threadIdx.x] = table[indices[threadIdx.x]];
}
KERNEL long_byte_lookup(const long *indices, const byte *table, byte *out) {
    out[threadIdx.x] = table[indices[threadIdx.x]];
}
KERNEL byte_offset(byte *out, const byte *in, long n) { out[threadIdx.x + n] = in[threadIdx.x]; }
AWAY void forward(float *a, float *b) { *a = *b; }
AWAY void backward(float *a, float *b) { *b = *a; }
typedef void (*Mover)(float *, float *);
__device__ Mover movers[2] = {forward, backward};
KERNEL function_pointer(float *a, float *b, int i) { movers[i](a, b); }
AWAY int fibonacci(int n, int *out) {
    if (n < 2)
        return n;
    out[n] = n;
    return fibonacci(n - 1, out) + fibonacci(n - 2, out);
}
KERNEL recursion(int *out, int n) { out[0] = fibonacci(n, out); }
struct Strided {
    int n;
    const float *data;
    long strides[8];
    float *out;
};
AWAY float item(const Strided *array, int i) { return array->data[array->strides[i & 7]]; }
KERNEL grid_constant(const __grid_constant__ Strided array, int i) { array.out[i] = item(&array, i); }
AWAY void change(float **pointers, float *p) { pointers[threadIdx.x & 1] = p; }
KERNEL changed_local(float *a, float *b, int i) {
    float *both[2] = {a, a};
    change(both, b);
    both[i][3] = 1;
}
KERNEL reduce(const float *in, float *out, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = index(); i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_down_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0)
        atomicAdd(out, sum);
}
KERNEL transpose(float *out, const float *in, int rows, int columns) {
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (x < columns && y < rows)
        tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
    __syncthreads();
    if (x < columns && y < rows)
        out[x * rows + y] = tile[threadIdx.y][threadIdx.x];
}
KERNEL matrix_product(const float *a, const float *b, float *c, int n) {
    __shared__ float left[16][16], right[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k += 16) {
        left[y][x] = a[(blockIdx.y * 16 + y) * n + k + x];
        right[y][x] = b[(k + y) * n + blockIdx.x * 16 + x];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = sum;
}
KERNEL spin_lock(int *lock, float *data) {
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    data[0] += 1;
    __threadfence();
    atomicExch(lock, 0);
}
KERNEL vectors(float4 *out, const float4 *in) { out[index()] = in[index()]; }
KERNEL unused(float *out, const float *in, const float *never) { out[0] = in[0]; }
KERNEL on_flag(float *out, const int *flag) {
    if (*flag)
        out[index()] = 1;
}
KERNEL long_strides(float *out, const float *in, long stride, long n) {
#pragma unroll 1
    for (long i = index(); i < n; i += stride)
        out[i * stride] = in[i];
}
KERNEL powers(double *out, const double *in) { out[index()] = pow(in[index()], 1.3) + sin(in[index()]); }
KERNEL halves(__half *out, const __half *in) { out[index()] = __hadd(out[index()], in[index()]); }
struct CArray {
    float *data;
    long size;
    long shape[2], strides[2];
};
KERNEL c_arrays(const CArray a, CArray b, int n) {
#pragma unroll 1
    for (int i = index(); i < n; i += gridDim.x * blockDim.x) {
        const long row = i / a.shape[1], column = i % a.shape[1];
        *(float *)((byte *)b.data + row * b.strides[0] + column * b.strides[1]) =
            *(const float *)((const byte *)a.data + row * a.strides[0] + column * a.strides[1]) * 2;
    }
}
KERNEL c_array_indices(const CArray a, CArray b, int axis) {
    *(float *)((byte *)b.data + index() * b.strides[axis]) = a.data[index() % a.shape[axis]];
}
struct Node {
    Node *next;
    int value;
};
KERNEL list(Node *node, int *sum) {
#pragma unroll 1
    while (node) {
        *sum += node->value;
        node = node->next;
    }
}
KERNEL swapped(float *a, float *b, int n) {
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        b[index()] = a[index() + 1];
        __syncthreads();
        float *other = a;
        a = b;
        b = other;
    }
}
KERNEL search(const int *sorted, const int *values, int *places, int n) {
    int low = 0, high = n;
    const int value = values[index()];
#pragma unroll 1
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    places[index()] = low;
}
KERNEL integers(unsigned long out, unsigned long in) { *(float *)out = *(const float *)in; }
KERNEL aligned(float *p, const float *in) { ((float *)((unsigned long)p & ~127ul))[threadIdx.x] = in[0]; }
KERNEL distance(const float *begin, const float *end, float *out) {
#pragma unroll 1
    for (long i = 0; i < end - begin; i++)
        out[i] = begin[i];
}
AWAY void inner(float *p, int i) { p[i] = i; }
AWAY void outer(float *p, const float *q, int i) {
    inner(p, i);
    inner(p + 1, int(q[i]));
}
KERNEL nested(float *a, const float *b, float *c) {
    outer(a, b, 1);
    inner(c, 3);
}
KERNEL allocates(float *out) {
    float *own = (float *)malloc(64);
    own[threadIdx.x] = 1;
    out[0] = own[3];
    free(own);
}
struct Large {
    int words[40];
};
KERNEL large(Large *out, const Large *in) { out[index()] = in[index()]; }
KERNEL cached(volatile float *out, const float *in) { out[index()] = __ldcg(in + index()) + __ldg(in + 5); }
KERNEL texture(cudaTextureObject_t object, float *out) { out[threadIdx.x] = tex1Dfetch<float>(object, threadIdx.x); }
template <typename F> __device__ void each(float *p, int n, F f) {
#pragma unroll 1
    for (int i = index(); i < n; i += 64)
        f(p[i]);
}
KERNEL functor(float *a, float *sums, int n) {
    each(a, n, [=](float &x) { atomicAdd(sums, x); });
    each(a, n, [=](float &x) { x = 0; });
}
KERNEL either(float *a, float *b, const float *c, int n) {
    float *out = n & 1 ? a : b;
    float *in = n & 1 ? b : a;
    out[index()] = in[index()] + c[0];
}
KERNEL early(float *out, const float *in, int n) {
    if (n < 3)
        return;
    if (in[0] > 0)
        return;
    out[0] = in[1];
}
KERNEL byte_copy(byte *out, const byte *in, size_t n) {
#pragma unroll 1
    for (size_t i = index(); i < n; i++)
        out[i] = in[i];
}
KERNEL double_atomics(double *sums, const double *in) { atomicAdd(sums + threadIdx.x % 4, in[index()]); }
KERNEL compact(const int *in, int *out, int *count, int n) {
    const bool keep = index() < n && in[index()] > 0;
    const unsigned votes = __ballot_sync(~0u, keep);
    int base = 0;
    if (threadIdx.x % 32 == 0)
        base = atomicAdd(count, __popc(votes));
    base = __shfl_sync(~0u, base, 0);
    if (keep)
        out[base + __popc(votes & ((1u << threadIdx.x % 32) - 1))] = in[index()];
}
KERNEL async_copy(const int4 *in, int4 *out) {
    __shared__ int4 tile[256];
    __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
KERNEL tensor_cores(const __half *a, const __half *b, float *c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.f);
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}
#if defined(NEW) // sm_90 and later
namespace ptx = cuda::ptx;
KERNEL map_load(const __grid_constant__ CUtensorMap map, float *out) {
    __shared__ alignas(128) float tile[1024];
    __shared__ alignas(8) uint64_t barrier;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        int32_t place[2] = {0, 0};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, place, &barrier);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, 4096);
    }
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0))
        ;
    out[threadIdx.x] = tile[threadIdx.x];
}
KERNEL map_store(const __grid_constant__ CUtensorMap map, const float *in) {
    __shared__ alignas(128) float tile[1024];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        int32_t place[2] = {0, 0};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, place, tile);
        ptx::cp_async_bulk_commit_group();
    }
}
KERNEL bulk(const float *in, float *out, int *sums) {
    __shared__ alignas(128) float tile[1024];
    __shared__ alignas(8) uint64_t barrier;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, 4096, &barrier);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, 4096);
        while (!ptx::mbarrier_try_wait_parity(&barrier, 0))
            ;
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, 4096);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, (int *)tile, 4096);
    }
}
#endif
