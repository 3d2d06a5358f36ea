"""Tiles in shared memory: transposes, products of matrices, Floyd-Warshall, bodies that attract each other.

After M. Harris, "An Efficient Matrix Transpose in CUDA C/C++" (NVIDIA, 2013), the section on shared memory of the CUDA
C++ Programming Guide, V. Volkov and J. Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra" (2008), G. Katz and
J. Kider, "All-Pairs Shortest-Paths for Large Graphs on the GPU" (2008), and L. Nyland, M. Harris and J. Prins, "Fast
N-Body Simulation with CUDA" (GPU Gems 3, 2007).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int tile[8][9];
    int column = threadIdx.x, row = threadIdx.y;
    tile[row][column] = x[(blockIdx.y * 8 + row) * 16 + blockIdx.x * 8 + column];  // A
    __syncthreads();  // missing barrier: ;
    y[(blockIdx.x * 8 + row) * 16 + blockIdx.y * 8 + column] = tile[column][row];  // B
}
""")
def transpose() -> Launch:
    x = np.arange(256, dtype=np.int32).reshape(16, 16)
    return Launch((2, 2), (8, 8), x, Out(x.T.copy()))


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float tile[16][17];
    int column = threadIdx.x;
    for (int row = threadIdx.y; row < 16; row += 4) tile[row][column] = x[row * 16 + column];  // A
    __syncthreads();  // missing barrier: __syncwarp();
    for (int row = threadIdx.y; row < 16; row += 4) y[row * 16 + column] = tile[column][row];  // B
}
""")
def transpose_with_four_rows_a_thread() -> Launch:
    x = numbers(256, np.float32).reshape(16, 16)
    return Launch(1, (16, 4), x, Out(x.T.copy()))


@program(r"""
__global__ void KERNEL(int* x) {
    int i = threadIdx.x, j = threadIdx.y;
    if (i < j) {  // instead: if (i <= j || j == i - 1) {
        int above = x[i * 8 + j];  // A
        x[i * 8 + j] = x[j * 8 + i];
        x[j * 8 + i] = above;  // B
    }
}
""")
def transpose_in_place() -> Launch:
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    return Launch(1, (8, 8), Out(x.T.copy(), x))


@program(r"""
__global__ void KERNEL(int* x) {
    __shared__ int tile[16][16];
    int i = threadIdx.x, j = threadIdx.y;
    tile[j][i] = x[j * 16 + i];  // A
    __syncthreads();  // missing barrier: ;
    x[i * 16 + j] = tile[j][i];  // B
}
""")
def transpose_in_place_by_a_copy() -> Launch:
    x = np.arange(256, dtype=np.int32).reshape(16, 16)
    return Launch(1, (16, 16), Out(x.T.copy(), x))


@program(r"""
__global__ void KERNEL(const float* a, const float* b, float* c, int n) {
    __shared__ float rows[8][8], columns[8][8];
    int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 8 + y, j = blockIdx.x * 8 + x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += 8) {
        rows[y][x] = a[i * n + tile + x];
        columns[y][x] = b[(tile + y) * n + j];  // A
        __syncthreads();  // missing barrier (load): ;
        for (int k = 0; k < 8; ++k) sum += rows[y][k] * columns[k][x];  // B
        __syncthreads();  // missing barrier (use): ;
    }
    c[i * n + j] = sum;
}
""")
def product() -> Launch:
    a, b = numbers(256, np.float32).reshape(16, 16), numbers(256, np.float32)[::-1].reshape(16, 16).copy()
    return Launch((2, 2), (8, 8), a, b, Out(a @ b), 16)


@program(r"""
__global__ void KERNEL(const float* a, const float* b, float* c, int n) {
    __shared__ float rows[2][8][8], columns[2][8][8];
    int x = threadIdx.x, y = threadIdx.y, now = 0;
    float sum = 0;
    rows[0][y][x] = a[y * n + x];
    columns[0][y][x] = b[y * 8 + x];
    __syncthreads();
    for (int tile = 0; tile < n; tile += 8) {
        int next = 1 - now;  // instead (one): int next = now;
        if (tile + 8 < n) {
            rows[next][y][x] = a[y * n + tile + 8 + x];
            columns[next][y][x] = b[(tile + 8 + y) * 8 + x];  // A
        }
        for (int k = 0; k < 8; ++k) sum += rows[now][y][k] * columns[now][k][x];  // B
        __syncthreads();  // missing barrier: ;
        now = next;
    }
    c[y * 8 + x] = sum;
}
""")
def product_with_two_buffers() -> Launch:
    a, b = numbers(256, np.float32).reshape(8, 32), numbers(256, np.float32)[::-1].reshape(32, 8).copy()
    return Launch(1, (8, 8), a, b, Out(a @ b), 32)


@program(r"""
__global__ void KERNEL(const float* a, const float4* b, float4* c) {
    __shared__ float4 tile[16][4];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = b[y * 4 + x];  // A
    __syncthreads();  // missing barrier: ;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < 16; ++k) {
        float factor = a[y * 16 + k];
        float4 v = tile[k][x];  // B
        sum.x += factor * v.x, sum.y += factor * v.y, sum.z += factor * v.z, sum.w += factor * v.w;
    }
    c[y * 4 + x] = sum;
}
""")
def product_with_vectors_of_four() -> Launch:
    a, b = numbers(256, np.float32).reshape(16, 16), numbers(256, np.float32)[::-1].reshape(16, 16).copy()
    return Launch(1, (4, 16), a, b, Out(a @ b))


@program(r"""
__global__ void KERNEL(const float* a, const float* x, float* y, int n) {
    __shared__ float part[64];
    int t = threadIdx.x;
    float sum = 0;
    for (int start = 0; start < n; start += 64) {
        part[t] = x[start + t];  // A
        __syncthreads();  // missing barrier (load): ;
        for (int k = 0; k < 64; ++k) sum += a[(blockIdx.x * 64 + t) * n + start + k] * part[k];  // B
        __syncthreads();  // missing barrier (use): __threadfence_block();
    }
    y[blockIdx.x * 64 + t] = sum;
}
""")
def matrix_and_vector() -> Launch:
    a, x = numbers(128 * 128, np.float32).reshape(128, 128), numbers(128, np.float32)
    return Launch(2, 64, a, x, Out(a @ x), 128)


@program(r"""
__global__ void KERNEL(const int* a, const int* b, int* c, int n) {
    int i = blockIdx.y * 4 + threadIdx.y, j = blockIdx.x * 4 + threadIdx.x, sum = 0;
    int share = n / gridDim.z;  // each layer of the grid adds a part of the products
    for (int k = blockIdx.z * share; k < (blockIdx.z + 1) * share; ++k) sum += a[i * n + k] * b[k * n + j];
    atomicAdd(&c[i * n + j], sum);  // A B missing atomic: c[i * n + j] += sum;
}
""")
def product_split_over_layers() -> Launch:
    a = numbers(64).reshape(8, 8)
    return Launch((2, 2, 2), (4, 4), a, a, Out(a @ a), 8)


@program(r"""
__global__ void KERNEL(const int* distances, int* shortest) {
    __shared__ int d[16][16];
    int i = threadIdx.y, j = threadIdx.x;
    d[i][j] = distances[i * 16 + j];  // A
    for (int k = 0; k < 16; ++k) {
        __syncthreads();  // missing barrier: ;
        int through = d[i][k] + d[k][j];  // B
        // Row k and column k stay as they are, because each vertex is at the distance 1 or more from itself.
        if (through < d[i][j]) d[i][j] = through;
    }
    shortest[i * 16 + j] = d[i][j];
}
""")
def shortest_paths_of_a_tile() -> Launch:
    x = numbers(256).reshape(16, 16) + 1
    d = x.copy()
    for k in range(16):
        d = np.minimum(d, d[:, k : k + 1] + d[k])
    return Launch(1, (16, 16), x, Out(d))


@program(r"""
__global__ void KERNEL(const int* distances, const int* pivot, int* shortest) {
    __shared__ int own[8][8], diagonal[8][8];
    int i = threadIdx.y, j = threadIdx.x, column = (blockIdx.x + 1) * 8 + j;
    own[i][j] = distances[i * 24 + column];
    diagonal[i][j] = pivot[i * 8 + j];  // A(load)
    __syncthreads();  // missing warp barrier (load): ;
    for (int k = 0; k < 8; ++k) {
        int through = diagonal[i][k] + own[k][j];  // B B(load)
        __syncthreads();
        own[i][j] = min(own[i][j], through);  // A
        __syncthreads();  // missing barrier: ;
    }
    shortest[i * 24 + column] = own[i][j];
}
""")
def shortest_paths_beside_the_diagonal() -> Launch:
    x, pivot = numbers(192).reshape(8, 24) + 1, numbers(64).reshape(8, 8)
    own = x[:, 8:].copy()
    for k in range(8):
        own = np.minimum(own, pivot[:, k : k + 1] + own[k])
    return Launch(2, (8, 8), x, pivot, Out(np.hstack([x[:, :8] * 0, own])))


@program(r"""
__global__ void KERNEL(const float4* bodies, float3* pulls, int n) {
    __shared__ float4 near[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = bodies[i];
    float3 pull = make_float3(0, 0, 0);
    for (int start = 0; start < n; start += 64) {
        near[threadIdx.x] = bodies[start + threadIdx.x];  // A
        __syncthreads();  // missing barrier (load): ;
        for (int k = 0; k < 64; ++k) {
            float4 other = near[k];  // B
            pull.x += other.w * (other.x - me.x);
            pull.y += other.w * (other.y - me.y);
            pull.z += other.w * (other.z - me.z);
        }
        __syncthreads();  // missing barrier (use): ;
    }
    pulls[i] = pull;
}
""")
def bodies() -> Launch:
    x = numbers(512, np.float32).reshape(128, 4)
    pulls = (x[None, :, 3:] * (x[None, :, :3] - x[:, None, :3])).sum(1)
    return Launch(2, 64, x, Out(pulls), 128)


@program(r"""
__global__ void KERNEL(const float* x, const float* y, float* outer) {
    __shared__ float a[8], b[8];
    int i = threadIdx.y, j = threadIdx.x;
    if (i == 0) a[j] = x[j];
    if (i == 1) b[j] = y[j];  // A
    __syncthreads();  // missing barrier: ;
    outer[i * 8 + j] = a[i] * b[j];  // B
}
""")
def outer_product() -> Launch:
    x, y = numbers(8, np.float32) + 1, numbers(8, np.float32)[::-1].copy()
    return Launch(1, (8, 8), x, y, Out(np.outer(x, y)))


@program(r"""
__global__ void KERNEL(const int* x, int* y) {
    __shared__ int tile[4][4][5];
    int i = threadIdx.x, j = threadIdx.y, k = threadIdx.z;
    tile[k][j][i] = x[(k * 4 + j) * 4 + i];  // A
    __syncthreads();  // missing barrier: ;
    y[(i * 4 + j) * 4 + k] = tile[k][j][i] + tile[i][j][k];  // B
}
""")
def axes_of_a_cube() -> Launch:
    x = numbers(64).reshape(4, 4, 4)
    return Launch(1, (4, 4, 4), x, Out((x + x.transpose(2, 1, 0)).transpose(2, 1, 0)))
