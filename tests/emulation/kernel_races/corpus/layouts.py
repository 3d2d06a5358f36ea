"""Which bytes two threads touch: vectors, structs, neighbouring bytes, arrays that share memory, rows that overlap.

The patterns are those of the chapters on device memory accesses and on shared memory of the CUDA C++ Programming Guide:
vector types, dynamic shared memory that several arrays share, and loops that stride over a grid.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    int i = threadIdx.x;
    float2 v = make_float2(x[i], -x[i]);
    int at = 2 * i;  // instead: int at = i & ~1;
    *(float2*)(y + at) = v;  // A B
}
""")
def pairs_side_by_side() -> Launch:
    x = numbers(64, np.float32)
    return Launch(1, 64, x, Out(np.stack([x, -x], 1)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    int i = threadIdx.x;
    if (i < 16) {
        *(int4*)(y + 4 * i) = make_int4(x[i], x[i], x[i], x[i]);  // A
    } else {
        y[48 + i] = -x[i];  // B instead: y[47 + i] = -x[i];
    }
}
""")
def element_beside_a_vector() -> Launch:
    x = numbers(32)
    return Launch(1, 32, x, Out(np.concatenate([np.repeat(x[:16], 4), -x[16:]])))


@program(r"""
__global__ void KERNEL(const unsigned char* x, unsigned char* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    y[i] = x[i] + 1;  // A B instead: *(unsigned short*)(y + (i & ~1)) = x[i] + 1;
}
""")
def bytes_side_by_side() -> Launch:
    x = numbers(64, np.uint8)
    return Launch(2, 32, x, Out(x + np.uint8(1)))


@program(r"""
__global__ void KERNEL(const int* x, unsigned char* bits) {
    int i = threadIdx.x;
    unsigned votes = __ballot_sync(0xffffffff, x[i] % 2);
    int byte = i / 8;
    if (i % 8 == 0) bits[byte] = votes >> (i % 32 & 24);  // A B same
    // instead: if (i % 4 == 0) bits[byte] = votes >> (i % 32 & 24);
}
""")
def bits_of_votes() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.packbits(x % 2, bitorder="little")))


@program(r"""
struct KERNEL_Body { float3 place; float mass; };
__global__ void KERNEL(KERNEL_Body* bodies, const float* masses) {
    int i = threadIdx.x;
    if (i < 32) bodies[i].mass = masses[i];  // A
    else bodies[i - 32].place.z = 1;  // B instead: else bodies[i - 32] = KERNEL_Body{{0, 0, 1}, 0};
}
""")
def fields_of_structs() -> Launch:
    masses = numbers(32, np.float32)
    bodies = np.zeros((32, 4), np.float32)
    bodies[:, 2], bodies[:, 3] = 1, masses
    return Launch(1, 64, Out(bodies), masses)


@program(r"""
struct KERNEL_Flags { unsigned low : 12; unsigned high : 20; };
__global__ void KERNEL(const int* x, unsigned* y) {
    __shared__ KERNEL_Flags flags[64];
    int t = threadIdx.x;
    if (t < 64) flags[t].low = x[t];  // A
    __syncthreads();  // missing barrier: ;
    if (t >= 64) flags[t - 64].high = x[t];  // B
    __syncthreads();
    if (t < 64) y[t] = flags[t].low + 1000u * flags[t].high;
}
""")
def bit_fields_of_one_word() -> Launch:
    x = numbers(128)
    return Launch(1, 128, x, Out((x[:64] + 1000 * x[64:]).astype(np.uint32)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    extern __shared__ int memory[];
    int *a = memory, *b = memory + 64;  // instead: int *a = memory, *b = memory + 60;
    int t = threadIdx.x;
    a[t] = x[t];  // A
    b[63 - t] = 2 * x[t];  // B
    __syncthreads();
    y[t] = a[63 - t] + b[t];
}
""")
def arrays_in_dynamic_memory() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(3 * x[::-1]), shared=512)


@program(r"""
__global__ void KERNEL(const double* x, float* y) {
    extern __shared__ double wide[];
    float* narrow = (float*)wide;  // the second use of the memory
    int t = threadIdx.x;
    wide[t] = x[t];
    __syncthreads();
    float half = (float)(wide[63 - t] / 2);  // A
    __syncthreads();  // missing barrier: ;
    narrow[t] = half;  // B
    __syncthreads();
    y[t] = narrow[(t + 1) % 64];
}
""")
def memory_used_again_as_another_type() -> Launch:
    x = numbers(64, np.float64)
    return Launch(1, 64, x, Out(np.roll(x[::-1] / 2, -1).astype(np.float32)), shared=512)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int width) {
    int start = blockIdx.x * 32;  // instead: int start = blockIdx.x * 30;
    y[start + threadIdx.x] = x[start + threadIdx.x] * width;  // A B
}
""")
def rows_that_overlap() -> Launch:
    x = numbers(128)
    return Launch(4, 32, x, Out(7 * x), 7)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int stride = gridDim.x * blockDim.x;  // instead: int stride = blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] += x[i];  // A B
    }
}
""")
def stride_of_a_grid() -> Launch:
    x = numbers(256)
    return Launch(2, 64, x, Out(3 * x, 2 * x), 256)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // instead: int i = threadIdx.x;
    if (i < n) y[i] = x[i] + 1;  // A B
}
""")
def index_without_the_block() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(x + 1), 128)


@program(r"""
__global__ void KERNEL(const float4* x, float4* y) {
    __shared__ float4 near[64];
    int t = threadIdx.x;
    near[t] = x[t];  // A
    __syncthreads();  // missing barrier: ;
    const float* flat = (const float*)near;
    y[t] = make_float4(flat[t], flat[64 + t], flat[128 + t], flat[192 + t]);  // B
}
""")
def vectors_read_as_elements() -> Launch:
    x = numbers(256, np.float32)
    return Launch(1, 64, x.reshape(64, 4), Out(x.reshape(4, 64).T.copy()))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int a[32], b[32];
    int t = threadIdx.x;
    if (t < 32) a[t] = x[t];  // A
    else b[t - 32] = x[t];  // A(second)
    __syncthreads();  // missing barrier: ;
    if (t < 32) y[t] = b[31 - t];  // B(second)
    else y[t] = a[t - 32];  // B
}
""")
def arrays_of_two_warps() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(np.concatenate([x[:31:-1], x[:32]])))


@program(r"""
__global__ void KERNEL(const short* x, short* y, int n) {
    int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 1 < n) *(short2*)(y + i) = make_short2(x[i] + x[i + 1], x[i] - x[i + 1]);  // A
    if (i == 0) y[n - 1] = x[n - 1];  // B instead: if (i == 0) y[n - 2] = x[n - 1];
}
""")
def last_element_of_an_odd_number() -> Launch:
    x = numbers(129, np.int16)
    a, b = x[:-1:2], x[1::2]
    return Launch(2, 32, x, Out(np.append(np.stack([a + b, a - b], 1).ravel(), x[-1])), 129)


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    int row = threadIdx.y, column = threadIdx.x;
    int at = row * 32 + column;  // instead: int at = row * 16 + column;
    y[at] = x[row * 32 + column];  // A B
}
""")
def width_of_a_row() -> Launch:
    x = numbers(128)
    return Launch(1, (32, 4), x, Out(x))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int near[128];
    for (int k = 0; k < 2; ++k) near[k * 64 + threadIdx.x] = x[k * 64 + threadIdx.x];  // A
    __syncthreads();  // missing barrier: ;
    memcpy(y + 2 * threadIdx.x, near + 2 * threadIdx.x, 2 * sizeof(int));  // B
}
""")
def copy_by_memcpy() -> Launch:
    x = numbers(128)
    return Launch(1, 64, x, Out(x))


@program(r"""
__device__ void KERNEL_swap(int& a, int& b) {
    int kept = a;
    a = b;
    b = kept;  // B
}
__global__ void KERNEL(int* x) {
    __shared__ int near[128];
    int t = threadIdx.x;
    near[t] = x[t];
    near[t + 64] = x[t + 64];
    __syncthreads();
    KERNEL_swap(near[2 * t], near[2 * t + 1]);
    __syncthreads();  // missing barrier: ;
    x[t] = near[t];  // A
    x[t + 64] = near[t + 64];
}
""")
def references_to_shared_memory() -> Launch:
    x = numbers(128)
    return Launch(1, 64, Out(x.reshape(64, 2)[:, ::-1].ravel(), x))


@program(r"""
template <class T, int rows>
struct KERNEL_Tile {
    T data[rows][32];
    __device__ void load(const T* x) {
        const int t = threadIdx.x;
        for (int row = threadIdx.y; row < rows; row += blockDim.y) data[row][t] = x[row * 32 + t];  // A
    }
    __device__ T sum(int column) const {
        T sum = 0;
        for (int row = 0; row < rows; ++row) sum += data[row][column];  // B
        return sum;
    }
};
__global__ void KERNEL(const float* x, float* sums) {
    __shared__ KERNEL_Tile<float, 8> tile;
    tile.load(x);
    __syncthreads();  // missing barrier: ;
    if (threadIdx.y == 0) sums[threadIdx.x] = tile.sum(threadIdx.x);
}
""")
def tile_as_a_template() -> Launch:
    x = numbers(256, np.float32).reshape(8, 32)
    return Launch(1, (32, 4), x, Out(x.sum(0)))


@program(r"""
__device__ int KERNEL_scratch[64];
__global__ void KERNEL(const int* x, int* y) {
    int t = threadIdx.x;
    KERNEL_scratch[t] = x[t];  // A
    __syncthreads();  // missing barrier: ;
    y[t] = KERNEL_scratch[63 - t];  // B
}
""")
def variable_of_the_device() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out(x[::-1].copy()))


@program(r"""
__global__ void KERNEL(const long long* x, long long* y) {
    int* halves = (int*)y;
    int i = threadIdx.x;
    halves[2 * i] = (int)x[i];  // A
    halves[2 * i + 1] = (int)(x[i] >> 32);  // B instead: y[i / 2] = x[i];
}
""")
def halves_of_long_numbers() -> Launch:
    x = (numbers(64, np.uint64) << np.uint64(33)) + np.uint64(3)
    return Launch(1, 64, x.view(np.int64), Out(x))


@program(r"""
__global__ void KERNEL(unsigned short* pair) {
    int t = threadIdx.x;
    if (t < 32) {
        unsigned short old = pair[0], seen;
        do {
            seen = old;
            old = atomicCAS(&pair[0], seen, (unsigned short)(seen + 1));  // B
        } while (old != seen);
    } else if (t == 32) {
        pair[1] = 7;  // A instead: pair[0] = 7;
    }
}
""")
def half_beside_an_atomic_one() -> Launch:
    return Launch(1, 64, Out(np.array([32, 7], np.uint16)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ unsigned long long best;
    int t = threadIdx.x;
    if (t == 0) best = ~0ull;
    __syncthreads();
    atomicMin(&best, (unsigned long long)x[t] << 32 | t);  // A
    __syncthreads();  // missing barrier: ;
    if (t < 2) y[t] = ((int*)&best)[t];  // B
}
""")
def place_and_least_number_in_one_word() -> Launch:
    x = numbers(96) + 1
    return Launch(1, 96, x, Out([np.argmin(x), x.min()]))


@program(r"""
__global__ void KERNEL(const unsigned char* x, unsigned* y) {
    __shared__ unsigned words[16];
    int t = threadIdx.x;
    ((unsigned char*)words)[t] = x[t];  // A
    __syncthreads();  // missing barrier: ;
    if (t < 16) y[t] = words[t];  // B
}
""")
def words_of_the_bytes_of_threads() -> Launch:
    x = numbers(64, np.uint8)
    return Launch(1, 64, x, Out(x.view(np.uint32)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ unsigned long long total;
    int t = threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    atomicAdd((unsigned*)&total, (unsigned)x[t]);  // A
    __syncthreads();  // missing barrier: ;
    if (t == 63) *y = (int)total;  // B
}
""")
def atomics_on_half_of_a_word() -> Launch:
    x = numbers(64)
    return Launch(1, 64, x, Out([x.sum()]))
