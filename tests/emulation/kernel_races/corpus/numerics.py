"""Numerical methods in one block: Fourier transforms, factorisations, triangular systems, recurrences, k-means.

After V. Volkov and B. Kazian, "Fitting FFT onto the G80 Architecture" (2008), J. Cooley and J. Tukey (1965), Y. Zhang,
J. Cohen and J. Owens, "Fast Tridiagonal Solvers on the GPU" (2010), and the wave fronts of S. Che and others, "Rodinia:
A Benchmark Suite for Heterogeneous Computing" (2009).
"""

from __future__ import annotations

import numpy as np

from support.kernel_corpus import Launch, Out, numbers, program


def dominant(size: int) -> np.ndarray:
    """Return a matrix whose factorisation needs no pivots."""
    matrix = (numbers(size * size).reshape(size, size) % 5).astype(np.float32)
    return matrix + 4 * size * np.eye(size, dtype=np.float32)


@program(r"""
__global__ void KERNEL(const float2* x, float2* y) {
    __shared__ float2 data[128];
    int t = threadIdx.x;
    for (int k = t; k < 128; k += 64) data[__brev(k) >> 25] = x[k];
    for (int half = 1; half < 128; half *= 2) {
        __syncthreads();  // missing barrier: ;
        int pair = t / half * 2 * half + t % half;
        float angle = -3.14159265f * (t % half) / half, s = sinf(angle), c = cosf(angle);
        float2 a = data[pair], b = data[pair + half];  // A
        float2 turned = make_float2(c * b.x - s * b.y, s * b.x + c * b.y);
        data[pair] = make_float2(a.x + turned.x, a.y + turned.y);
        data[pair + half] = make_float2(a.x - turned.x, a.y - turned.y);  // B
    }
    __syncthreads();
    y[t] = data[t];
    y[t + 64] = data[t + 64];
}
""")
def fourier_transform() -> Launch:
    x = np.sin(np.arange(128)).astype(np.float32)
    spectrum = np.fft.fft(x)
    expected = np.stack([spectrum.real, spectrum.imag], 1).astype(np.float32)
    return Launch(1, 64, np.stack([x, 0 * x], 1), Out(expected, of=lambda y: np.abs(y - expected) < 1e-3))


@program(r"""
__global__ void KERNEL(const float* x, float* y, int n) {
    extern __shared__ float data[];
    int t = threadIdx.x;
    data[t] = x[t];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();  // missing barrier (written): ;
        float mine = data[t], other = data[t ^ half];  // A
        __syncthreads();  // missing barrier (read): ;
        data[t] = t & half ? other - mine : mine + other;  // B
    }
    y[t] = data[t];
}
""")
def walsh_hadamard_transform() -> Launch:
    x = numbers(64, np.float32)
    signs = np.array([[(-1) ** bin(i & j).count("1") for i in range(64)] for j in range(64)], np.float32)
    return Launch(1, 64, x, Out(signs @ x), 64, shared=256)


@program(r"""
__global__ void KERNEL(float* matrix) {
    __shared__ float a[16][16];
    int i = threadIdx.y, j = threadIdx.x;
    a[i][j] = matrix[i * 16 + j];
    for (int k = 0; k < 15; ++k) {
        __syncthreads();  // missing barrier (updated): ;
        if (i > k && j == k) a[i][k] /= a[k][k];  // A B(updated)
        __syncthreads();  // missing warp barrier: ;
        if (i > k && j > k) a[i][j] -= a[i][k] * a[k][j];  // B A(updated)
    }
    matrix[i * 16 + j] = a[i][j];
}
""")
def lu_factors() -> Launch:
    a = dominant(16)
    factors = a.astype(np.float64)
    for k in range(15):
        factors[k + 1 :, k] /= factors[k, k]
        factors[k + 1 :, k + 1 :] -= np.outer(factors[k + 1 :, k], factors[k, k + 1 :])
    return Launch(1, (16, 16), Out(factors.astype(np.float32), a))


@program(r"""
__global__ void KERNEL(float* matrix) {
    __shared__ float a[64][9];
    int i = threadIdx.x;
    for (int j = 0; j < 8; ++j) a[i][j] = i < 8 ? matrix[i * 8 + j] : 0;
    for (int k = 0; k < 8; ++k) {
        if (i == k) a[k][k] = sqrtf(a[k][k]);  // A
        __syncthreads();  // missing warp barrier: ;
        if (i > k && i < 8) a[i][k] /= a[k][k];  // B
        __syncthreads();
        for (int j = k + 1; j <= i && i < 8; ++j) a[i][j] -= a[i][k] * a[j][k];
        __syncthreads();
    }
    for (int j = 0; j <= i && i < 8; ++j) matrix[i * 8 + j] = a[i][j];
}
""")
def cholesky_factor() -> Launch:
    a = dominant(8)
    a = (a + a.T) / 2
    lower = np.linalg.cholesky(a.astype(np.float64)).astype(np.float32)
    return Launch(1, 64, Out(lower + np.triu(a, 1), a))


@program(r"""
__global__ void KERNEL(const float* lower, const float* b, float* x) {
    __shared__ float solved[64];
    int i = threadIdx.x;
    float rest = b[i];
    for (int k = 0; k < 64; ++k) {
        if (i == k) solved[k] = rest / lower[k * 64 + k];  // A
        __syncthreads();  // missing barrier: ;
        if (i > k) rest -= lower[i * 64 + k] * solved[k];  // B
    }
    x[i] = solved[i];
}
""")
def triangular_system() -> Launch:
    lower, x = np.tril(dominant(64)), numbers(64, np.float64)
    return Launch(1, 64, lower, (lower @ x).astype(np.float32), Out(x.astype(np.float32)))


@program(r"""
__global__ void KERNEL(const float* lower, float* x, int* ready) {
    int row = blockIdx.x;
    if (threadIdx.x != 0) return;
    float rest = x[row];
    for (int k = 0; k < row; ++k) {
        while (atomicAdd(&ready[k], 0) == 0) {}
        __threadfence();
        rest -= lower[row * gridDim.x + k] * x[k];  // B
    }
    x[row] = rest / lower[row * gridDim.x + row];  // A
    __threadfence();  // missing fence: ;
    atomicExch(&ready[row], 1);
}
""")
def triangular_system_of_blocks() -> Launch:
    lower, x = np.tril(dominant(8)), numbers(8, np.float32)
    return Launch(8, 32, lower, Out(x, lower @ x), np.zeros(8, np.int32))


@program(r"""
__global__ void KERNEL(float* a, float* b, float* c, float* d) {
    __shared__ float low[64], middle[64], high[64], right[64];
    int i = threadIdx.x;
    low[i] = a[i], middle[i] = b[i], high[i] = c[i], right[i] = d[i];
    for (int step = 1; step < 64; step *= 2) {
        __syncthreads();  // missing barrier (written): ;
        int up = max(i - step, 0), down = min(i + step, 63);
        float k = i >= step ? -low[i] / middle[up] : 0, m = i + step < 64 ? -high[i] / middle[down] : 0;
        float l = k * low[up], h = m * high[down], r = right[i] + k * right[up] + m * right[down];  // A
        float centre = middle[i] + k * high[up] + m * low[down];
        __syncthreads();  // missing barrier (read): ;
        low[i] = l, middle[i] = centre, high[i] = h, right[i] = r;  // B
    }
    d[i] = right[i] / middle[i];
}
""")
def cyclic_reduction() -> Launch:
    x = numbers(64, np.float64)
    a, b, c = np.ones(64, np.float32), np.full(64, 4, np.float32), np.ones(64, np.float32)
    a[0] = c[63] = 0
    d = 4 * x + np.append(0, x[:-1]) + np.append(x[1:], 0)
    return Launch(1, 64, a, b, c, Out(x.astype(np.float32), d.astype(np.float32), of=lambda y: np.round(y, 2) + 0.0))


@program(r"""
__global__ void KERNEL(const char* a, const char* b, int* length) {
    __shared__ int rows[3][65];
    int t = threadIdx.x;
    rows[0][t] = rows[1][t] = rows[2][t] = 0;
    if (t == 0) rows[0][64] = rows[1][64] = rows[2][64] = 0;
    __syncthreads();
    for (int front = 0; front < 127; ++front) {
        int *now = rows[front % 3], *last = rows[(front + 2) % 3], *before = rows[(front + 1) % 3];
        int i = t, j = front - t;
        if (j >= 0 && j < 64) {
            now[i + 1] = a[i] == b[j] ? before[i] + 1 : max(last[i], last[i + 1]);  // A B
        }
        __syncthreads();  // missing barrier: ;
    }
    if (t == 63) *length = rows[126 % 3][64];
}
""")
def longest_common_subsequence() -> Launch:
    a, b = (numbers(64) % 4).astype(np.int8), (numbers(64)[::-1] % 4).astype(np.int8)
    table = np.zeros((65, 65), int)
    for i in range(64):
        for j in range(64):
            table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else max(table[i, j + 1], table[i + 1, j])
    return Launch(1, 64, a, b, Out([table[64, 64]]))


@program(r"""
__global__ void KERNEL(const int* costs, int* best, int rows) {
    __shared__ int last[66];
    int t = threadIdx.x;
    if (t < 2) last[65 * t] = 1000;
    last[t + 1] = costs[t];
    for (int row = 1; row < rows; ++row) {
        __syncthreads();  // missing barrier (written): ;
        int least = min(last[t], min(last[t + 1], last[t + 2]));  // A
        __syncthreads();  // missing barrier (read): ;
        last[t + 1] = least + costs[row * 64 + t];  // B
    }
    best[t] = last[t + 1];
}
""")
def cheapest_way_through_a_grid() -> Launch:
    costs = numbers(320).reshape(5, 64)
    best = costs[0]
    for row in costs[1:]:
        wide = np.pad(best, 1, constant_values=1000)
        best = row + np.minimum(np.minimum(wide[:-2], wide[1:-1]), wide[2:])
    return Launch(1, 64, costs, Out(best), 5)


@program(r"""
__global__ void KERNEL(const float* x, float* centres, int rounds) {
    __shared__ float sums[2], middle[2];
    __shared__ int counts[2];
    int t = threadIdx.x;
    if (t < 2) middle[t] = centres[t];
    for (int round = 0; round < rounds; ++round) {
        if (t < 2) sums[t] = counts[t] = 0;  // A(cleared)
        __syncthreads();  // missing barrier (cleared): ;
        int near = fabsf(x[t] - middle[1]) < fabsf(x[t] - middle[0]);  // B
        atomicAdd(&sums[near], x[t]);  // B(cleared) A(plain) B(plain) missing atomic (plain): sums[near] += x[t];
        atomicAdd(&counts[near], 1);
        __syncthreads();  // missing barrier: ;
        if (t < 2) middle[t] = sums[t] / counts[t];  // A
    }
    if (t < 2) centres[t] = middle[t];
}
""")
def rounds_of_k_means() -> Launch:
    x, centres = numbers(64, np.float32), np.array([0, 100], np.float32)
    middle = centres
    for _ in range(3):
        near = abs(x - middle[1]) < abs(x - middle[0])
        middle = np.array([x[~near].sum() / (~near).sum(), x[near].sum() / near.sum()], np.float32)
    return Launch(1, 64, x, Out(middle, centres), 3)


@program(r"""
__global__ void KERNEL(const float* a, float* x, float* norms, int rounds) {
    __shared__ float part[64], length;
    int i = threadIdx.x;
    for (int round = 0; round < rounds; ++round) {
        float sum = 0;
        for (int k = 0; k < 64; ++k) sum += a[i * 64 + k] * x[k];
        part[i] = fabsf(sum);
        for (int step = 32; step > 0; step /= 2) {
            __syncthreads();
            if (i < step) part[i] = fmaxf(part[i], part[i + step]);
        }
        if (i == 0) norms[round] = length = part[0];  // A
        __syncthreads();  // missing barrier: ;
        x[i] = sum / length;  // B
        __syncthreads();
    }
}
""")
def power_iteration() -> Launch:
    a, x = dominant(64), np.ones(64, np.float32)
    norms, now = [], x.astype(np.float64)
    for _ in range(3):
        now = a.astype(np.float64) @ now
        norms.append(np.float32(abs(now).max()))
        now = now / abs(now).max()
    return Launch(1, 64, a, Out(now.astype(np.float32), x), Out(np.array(norms, np.float32)), 3)


@program(r"""
__global__ void KERNEL(const float* points, const float* values, float* sums, int n) {
    __shared__ float near[32];
    int t = threadIdx.x;
    float x = points[blockIdx.x * 32 + t], sum = 0;
    for (int start = 0; start < n; start += 32) {
        near[t] = values[start + t];  // A
        __syncwarp();  // missing warp barrier: ;
        for (int k = 31; k >= 0; --k) sum = sum * x + near[k];  // B
        __syncwarp();
    }
    sums[blockIdx.x * 32 + t] = sum;
}
""")
def polynomials() -> Launch:
    points, values = (numbers(64) % 3 - 1).astype(np.float32), numbers(64, np.float32)
    sums = np.zeros(64, np.float32)
    for start in (0, 32):
        for k in range(31, -1, -1):
            sums = sums * points + values[start + k]
    return Launch(2, 32, points, values, Out(sums), 64)
