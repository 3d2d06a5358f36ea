"""Elements and their neighbours: stencils with halos, filters of images, cellular automata, updates in place.

After P. Micikevicius, "3D Finite Difference Computation on GPUs using CUDA" (2009), V. Podlozhnyuk, "Image Convolution
with CUDA" (NVIDIA, 2007), and the classical pair of Jacobi and Gauss-Seidel iterations.
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    __shared__ int near[66];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    near[t + 1] = x[i];  // A
    if (t == 0) near[0] = i > 0 ? x[i - 1] : 0;
    if (t == 0) near[65] = i + 64 < n ? x[i + 64] : 0;  // A(halo)
    __syncthreads();  // missing barrier: ;
    // missing barrier (halo): if (t < 32) __syncwarp();
    y[i] = near[t] - 2 * near[t + 1] + near[t + 2];  // B
}
""")
def second_difference() -> Launch:
    x = numbers(128)
    padded = np.pad(x, 1)
    return Launch(2, 64, x, Out(padded[:-2] - 2 * x + padded[2:]), 128)


@program(r"""
__global__ void KERNEL(int* x, int n) {
    int i = threadIdx.x;
    int next = i + 1 < n ? x[i + 1] : 0;  // A
    __syncthreads();  // missing barrier: ;
    x[i] = next;  // B
}
""")
def shift_in_place() -> Launch:
    x = numbers(100)
    return Launch(1, 100, Out(np.append(x[1:], 0), x), 100)


@program(r"""
__global__ void KERNEL(const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int* to = y;  // instead: int* to = (int*)x;
    if (i + 1 < n) to[i] = x[i] + x[i + 1];  // A B
}
""")
def sums_of_neighbours_in_place() -> Launch:
    x = numbers(128)
    return Launch(2, 64, x, Out(np.append(x[1:] + x[:-1], 0)), 128)


@program(r"""
__global__ void KERNEL(const float* x, float* y, int n) {
    __shared__ float a[64], b[64];
    int t = threadIdx.x;
    float *now = a, *next = b;
    now[t] = x[t];
    for (int step = 0; step < n; ++step) {
        __syncthreads();  // missing barrier: ;
        next[t] = (t > 0 ? now[t - 1] : 0) + (t < 63 ? now[t + 1] : 0);  // A B
        float* kept = now;
        now = next;
        next = kept;
    }
    y[t] = now[t];
}
""")
def jacobi_with_two_arrays() -> Launch:
    x = numbers(64, np.float32)
    y = x
    for _ in range(5):
        padded = np.pad(y, 1)
        y = padded[:-2] + padded[2:]
    return Launch(1, 64, x, Out(y), 5)


@program(r"""
__global__ void KERNEL(float* x, int n) {
    int i = threadIdx.x + 1;
    for (int step = 0; step < n; ++step) {
        float value = (x[i - 1] + x[i + 1]) / 2;  // A
        __syncthreads();  // missing barrier (read): ;
        x[i] = value;  // B
        __syncthreads();  // missing barrier (written): ;
    }
}
""")
def jacobi_in_global_memory() -> Launch:
    x = numbers(66, np.float32)
    y = x.copy()
    for _ in range(3):
        y[1:-1] = (y[:-2] + y[2:]) / 2
    return Launch(1, 64, Out(y, x), 3)


@program(r"""
__global__ void KERNEL(int* x, int n) {
    int t = threadIdx.x;
    for (int colour = 0; colour < 2; ++colour) {
        int i = 2 * t + colour;
        if (i > 0 && i < n - 1) x[i] += x[i - 1] + x[i + 1];  // A B
        __syncthreads();  // missing barrier: ;
    }
}
""")
def gauss_seidel_in_two_colours() -> Launch:
    x = numbers(128)
    y = x.copy()
    for start in (2, 1):
        y[start:-1:2] += y[start - 1 : -2 : 2] + y[start + 1 :: 2]
    return Launch(1, 64, Out(y, x), 128)


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float tile[10][10];
    int i = threadIdx.x, j = threadIdx.y;
    for (int k = j * 8 + i; k < 100; k += 64) {
        int row = blockIdx.y * 8 + k / 10, column = blockIdx.x * 8 + k % 10;
        tile[k / 10][k % 10] = x[row * 18 + column];  // A
    }
    __syncthreads();  // missing barrier: ;
    float sum = tile[j][i + 1] + tile[j + 2][i + 1] + tile[j + 1][i] + tile[j + 1][i + 2];  // B
    y[(blockIdx.y * 8 + j) * 16 + blockIdx.x * 8 + i] = sum - 4 * tile[j + 1][i + 1];
}
""")
def five_points() -> Launch:
    x = numbers(324, np.float32).reshape(18, 18)
    y = x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1] - 4 * x[1:-1, 1:-1]
    return Launch((2, 2), (8, 8), x, Out(y))


@program(r"""
__global__ void KERNEL(const float* x, float* y, int planes) {
    __shared__ float plane[8][8];
    int i = threadIdx.x, j = threadIdx.y;
    for (int k = 0; k < planes; ++k) {
        plane[j][i] = x[(k * 8 + j) * 8 + i];  // A
        __syncthreads();  // missing barrier (load): ;
        float left = plane[j][(i + 7) % 8], up = plane[(j + 7) % 8][i];  // B
        y[(k * 8 + j) * 8 + i] = left + up;
        __syncthreads();  // missing barrier (use): ;
    }
}
""")
def planes_of_a_volume() -> Launch:
    x = numbers(256, np.float32).reshape(4, 8, 8)
    return Launch(1, (8, 8), x, Out(np.roll(x, 1, 2) + np.roll(x, 1, 1)), 4)


@program(r"""
__global__ void KERNEL(const unsigned char* cells, unsigned char* next, int steps) {
    __shared__ unsigned char life[2][16][16];
    int i = threadIdx.x, j = threadIdx.y, now = 0;
    life[0][j][i] = cells[j * 16 + i];
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        int alive = 0;
        for (int d = 0; d < 9; ++d) alive += d != 4 && life[now][(j + d / 3 + 15) % 16][(i + d % 3 + 15) % 16];  // A
        int to = 1 - now;  // instead (one): int to = now;
        life[to][j][i] = alive == 3 || (alive == 2 && life[now][j][i]);  // B
        __syncthreads();  // missing barrier: ;
        now = to;
    }
    next[j * 16 + i] = life[now][j][i];
}
""")
def game_of_life() -> Launch:
    cells = (numbers(256, np.uint8) % 3 == 0).reshape(16, 16)
    now = cells
    for _ in range(3):
        alive = sum(
            np.roll(now, (a, b), (0, 1)).astype(int) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)
        )
        now = (alive == 3) | ((alive == 2) & now)
    return Launch(1, (16, 16), cells.astype(np.uint8), Out(now.astype(np.uint8)), 3)


@program(r"""
__global__ void KERNEL(const unsigned char* now, unsigned char* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int left = now[(i + n - 1) % n], right = now[(i + 1) % n];  // A
    unsigned char* to = next;  // instead: unsigned char* to = (unsigned char*)now;
    to[i] = 30 >> (left * 4 + now[i] * 2 + right) & 1;  // B
}
""")
def rule_30() -> Launch:
    now = (numbers(100, np.uint8) % 2).astype(np.uint8)
    number = np.roll(now, 1) * 4 + now * 2 + np.roll(now, -1)
    return Launch(2, 64, now, Out(30 >> number.astype(np.uint8) & 1), 100)


@program(r"""
__global__ void KERNEL(const float* x, const float* weights, float* y) {
    extern __shared__ float memory[];
    float *near = memory, *w = memory + 68;
    int t = threadIdx.x;
    near[t] = x[blockIdx.x * 64 + t];
    if (t < 4) near[64 + t] = x[blockIdx.x * 64 + 64 + t];
    if (t < 5) w[t] = weights[t];  // A
    __syncthreads();  // missing barrier: ;
    float sum = 0;
    for (int k = 0; k < 5; ++k) sum += w[k] * near[t + k];  // B
    y[blockIdx.x * 64 + t] = sum;
}
""")
def convolution_with_weights_in_shared_memory() -> Launch:
    x, weights = numbers(132, np.float32), np.array([1, 4, 6, 4, 2], np.float32)
    return Launch(2, 64, x, weights, Out(np.correlate(x, weights)), shared=73 * 4)


@program(r"""
__global__ void KERNEL(const float* x, float* y) {
    __shared__ float rows[16][16];
    int i = threadIdx.x, j = threadIdx.y;
    float sum = 0;
    for (int k = -1; k <= 1; ++k) sum += x[j * 16 + min(max(i + k, 0), 15)];
    rows[j][i] = sum;  // A
    __syncthreads();  // missing barrier: ;
    sum = 0;
    for (int k = -1; k <= 1; ++k) sum += rows[min(max(j + k, 0), 15)][i];  // B
    y[j * 16 + i] = sum;
}
""")
def box_filter_by_rows_and_columns() -> Launch:
    x = numbers(256, np.float32).reshape(16, 16)
    wide = np.pad(x, 1, mode="edge")
    return Launch(1, (16, 16), x, Out(sum(wide[a : a + 16, b : b + 16] for a in range(3) for b in range(3))))


@program(r"""
__global__ void KERNEL(const unsigned char* x, unsigned char* y) {
    __shared__ unsigned char near[66];
    int t = threadIdx.x;
    near[t + 1] = x[t];  // A
    if (t < 2) near[t * 65] = x[t * 63];
    __syncthreads();  // missing barrier: __syncwarp();
    int a = near[t], b = near[t + 1], c = near[t + 2];  // B
    y[t] = max(min(a, b), min(max(a, b), c));
}
""")
def median_of_three() -> Launch:
    x = numbers(64, np.uint8)
    wide = np.pad(x, 1, mode="edge")
    return Launch(1, 64, x, Out(np.median([wide[:-2], wide[1:-1], wide[2:]], axis=0).astype(np.uint8)))


@program(r"""
__global__ void KERNEL(const float* x, float* y, float tolerance) {
    __shared__ float tile[4][34];
    int i = threadIdx.x, j = threadIdx.y;
    tile[j][i + 1] = x[j * 32 + i];  // A
    if (i == 0) tile[j][0] = tile[j][33] = -1;
    __syncwarp();  // missing warp barrier: ;
    float sum = 0, weights = 0;
    for (int k = 0; k < 3; ++k) {
        float value = tile[j][i + k];  // B
        float weight = value >= 0 && fabsf(value - x[j * 32 + i]) <= tolerance ? 1 : 0;
        sum += weight * value;
        weights += weight;
    }
    y[j * 32 + i] = sum / weights;
}
""")
def bilateral_filter_of_rows() -> Launch:
    x = numbers(128, np.float32).reshape(4, 32)
    wide = np.pad(x, ((0, 0), (1, 1)), constant_values=-1)
    near = np.stack([wide[:, k : k + 32] for k in range(3)])
    weight = (near >= 0) & (abs(near - x) <= 40)
    return Launch(1, (32, 4), x, Out((near * weight).sum(0) / weight.sum(0, dtype=np.float32)), 40.0)


@program(r"""
__global__ void KERNEL(const float2* x, float2* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 v = x[i];
    int to = n - 1 - i;  // instead: int to = i / 2;
    y[to] = make_float2(v.y, v.x);  // A B
}
""")
def reversed_pairs() -> Launch:
    x = numbers(200, np.float32)
    return Launch(2, 64, x.reshape(100, 2), Out(x[::-1].reshape(100, 2)), 100)


@program(r"""
__global__ void KERNEL(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) {  // instead: if (i < n) {
        int left = x[i];  // A
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = left;  // B
    }
}
""")
def reversal_in_place() -> Launch:
    x = numbers(128)
    return Launch(2, 64, Out(x[::-1].copy(), x), 128)


@program(r"""
__global__ void KERNEL(const float* heat, float* next, float* change) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float left = heat[(i + 127) % 128], right = heat[(i + 1) % 128];
    next[i] = (left + right) / 2;
    int difference = __float_as_int(fabsf(next[i] - heat[i]));
    atomicMax((int*)change, difference);  // A B
    // missing atomic: if (*change < __int_as_float(difference)) *change = __int_as_float(difference);
}
""")
def heat_and_its_largest_change() -> Launch:
    x = numbers(128, np.float32)
    y = (np.roll(x, 1) + np.roll(x, -1)) / 2
    return Launch(2, 64, x, Out(y), Out([abs(y - x).max()]))
