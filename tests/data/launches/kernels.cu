// Usual kernels of programs, for tests of the bytes that a launch uses for certain. Each begins with "//// NAME".
// tests/support/launched_kernels.py has their launches. README.md says how kernels.ptx was made.

//// copy
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

//// fill
extern "C" __global__ void k(float *y, float value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = value;
}

//// scale_in_place
extern "C" __global__ void k(float *y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] *= factor;
}

//// axpy
extern "C" __global__ void k(double alpha, const double *x, double *y, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
        y[i] += alpha * x[i];
}

//// add
extern "C" __global__ void k(const float *a, const float *b, float *c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

//// exponential
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i]) / (1.0f + x[i] * x[i]);
}

//// sine
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sinf(x[i]);
}

//// power
extern "C" __global__ void k(const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = pow(x[i], 1.5);
}

//// relu
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (x[i] > 0) y[i] = x[i];
        else y[i] = 0.01f * x[i];
    }
}

//// masked
extern "C" __global__ void k(const unsigned char *mask, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && mask[i]) y[i] = x[i];
}

//// strided
extern "C" __global__ void k(const float *x, float *y, int first, int step, int n) {
    int i = first + step * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = 2 * x[i];
}

//// reversed
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[n - 1 - i] = x[i];
}

//// transpose
extern "C" __global__ void k(const float *x, float *y, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) y[column * rows + row] = x[row * columns + column];
}

//// transpose_in_tiles
extern "C" __global__ void k(const float *x, float *y, int rows, int columns) {
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        if (row + step < rows && column < columns) tile[threadIdx.y + step][threadIdx.x] = x[(row + step) * columns + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        if (row + step < columns && column < rows) y[(row + step) * rows + column] = tile[threadIdx.x][threadIdx.y + step];
}

//// product
extern "C" __global__ void k(const float *a, const float *b, float *c, int rows, int columns, int depth) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = 0;
    for (int inner = 0; inner < depth; ++inner) sum += a[row * depth + inner] * b[inner * columns + column];
    c[row * columns + column] = sum;
}

//// product_in_tiles
extern "C" __global__ void k(const float *a, const float *b, float *c, int rows, int columns, int depth) {
    __shared__ float left[16][16], right[16][16];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int tile = 0; tile < (depth + 15) / 16; ++tile) {
        int inner = tile * 16 + threadIdx.x, outer = tile * 16 + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < rows && inner < depth ? a[row * depth + inner] : 0;
        right[threadIdx.y][threadIdx.x] = outer < depth && column < columns ? b[outer * columns + column] : 0;
        __syncthreads();
        for (int place = 0; place < 16; ++place) sum += left[threadIdx.y][place] * right[place][threadIdx.x];
        __syncthreads();
    }
    if (row < rows && column < columns) c[row * columns + column] = sum;
}

//// product_with_vector
extern "C" __global__ void k(const float *a, const float *x, float *y, int rows, int columns) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0;
    for (int column = threadIdx.x; column < columns; column += 32) sum += a[row * columns + column] * x[column];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) y[row] = sum;
}

//// stencil_of_a_line
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

//// stencil_with_shared_memory
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float line[256 + 6];
    int i = blockIdx.x * 256 + threadIdx.x, place = threadIdx.x + 3;
    line[place] = i < n ? x[i] : 0;
    if (threadIdx.x < 3) {
        line[place - 3] = i >= 3 ? x[i - 3] : 0;
        line[place + 256] = i + 256 < n ? x[i + 256] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int step = -3; step <= 3; ++step) sum += line[place + step];
    if (i < n) y[i] = sum;
}

//// jacobi
extern "C" __global__ void k(const double *x, double *y, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x + 1, row = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (row < rows - 1 && column < columns - 1) {
        int i = row * columns + column;
        y[i] = 0.25 * (x[i - 1] + x[i + 1] + x[i - columns] + x[i + columns]);
    }
}

//// heat_in_space
extern "C" __global__ void k(const float *x, float *y, int nx, int ny, int nz, float rate) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y,
        l = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 1 || j < 1 || l < 1 || i >= nx - 1 || j >= ny - 1 || l >= nz - 1) return;
    int c = (l * ny + j) * nx + i;
    y[c] = x[c] + rate * (x[c - 1] + x[c + 1] + x[c - nx] + x[c + nx] + x[c - nx * ny] + x[c + nx * ny] - 6 * x[c]);
}

//// blur_at_the_borders
extern "C" __global__ void k(const unsigned char *x, unsigned char *y, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    int sum = 0;
    for (int down = -1; down <= 1; ++down)
        for (int right = -1; right <= 1; ++right) {
            int r = min(max(row + down, 0), rows - 1), c = min(max(column + right, 0), columns - 1);
            sum += x[r * columns + c];
        }
    y[row * columns + column] = sum / 9;
}

//// filter_of_an_image
__constant__ float weights[25];
extern "C" __global__ void k(const float *x, float *y, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = 0;
    for (int down = -2; down <= 2; ++down)
        for (int right = -2; right <= 2; ++right) {
            int r = row + down, c = column + right;
            if (r >= 0 && r < rows && c >= 0 && c < columns) sum += x[r * columns + c] * weights[(down + 2) * 5 + right + 2];
        }
    y[row * columns + column] = sum;
}

//// streaming_of_a_lattice
extern "C" __global__ void k(const float *f, float *g, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    float rho = 0, value[9];
    for (int q = 0; q < 9; ++q) {
        int from_x = (x - cx[q] + nx) % nx, from_y = (y - cy[q] + ny) % ny;
        value[q] = f[(q * ny + from_y) * nx + from_x];
        rho += value[q];
    }
    for (int q = 0; q < 9; ++q) g[(q * ny + y) * nx + x] = value[q] - 0.6f * (value[q] - rho / 9);
}

//// bodies
extern "C" __global__ void k(const float4 *position, float4 *force, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 own = position[i], sum = {0, 0, 0, 0};
    for (int j = 0; j < n; ++j) {
        float4 other = position[j];
        float x = other.x - own.x, y = other.y - own.y, z = other.z - own.z;
        float inverse = rsqrtf(x * x + y * y + z * z + 1e-6f);
        float factor = other.w * inverse * inverse * inverse;
        sum.x += x * factor;
        sum.y += y * factor;
        sum.z += z * factor;
    }
    force[i] = sum;
}

//// sums_of_blocks
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float part[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 128; step > 0; step >>= 1) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

//// sum_by_atomics
extern "C" __global__ void k(const float *x, float *y, int n) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(y, sum);
}

//// histogram
extern "C" __global__ void k(const unsigned char *x, int *y, int n) {
    __shared__ int counts[256];
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[x[i]], 1);
    __syncthreads();
    atomicAdd(&y[threadIdx.x], counts[threadIdx.x]);
}

//// histogram_in_memory
extern "C" __global__ void k(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&y[x[i]], 1);
}

//// scan_of_blocks
extern "C" __global__ void k(const int *x, int *y, int n) {
    __shared__ int part[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        int add = threadIdx.x >= step ? part[threadIdx.x - step] : 0;
        __syncthreads();
        part[threadIdx.x] += add;
        __syncthreads();
    }
    if (i < n) y[i] = part[threadIdx.x];
}

//// gather
extern "C" __global__ void k(const float *x, const int *index, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[index[i]];
}

//// scatter
extern "C" __global__ void k(const float *x, const int *index, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[index[i]] = x[i];
}

//// embedding
extern "C" __global__ void k(const float *table, const long long *index, float *y, int width) {
    int row = blockIdx.x;
    for (int i = threadIdx.x; i < width; i += blockDim.x) y[row * width + i] = table[index[row] * width + i];
}

//// structures
struct Particle { float x, y, z; int kind; double mass; };
extern "C" __global__ void k(const Particle *from, Particle *to, float step, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle one = from[i];
    one.x += step;
    to[i] = one;
}

//// structure_of_arrays
struct Arrays { float *x, *y, *z; int n; };
extern "C" __global__ void k(Arrays arrays, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < arrays.n) arrays.z[i] = arrays.x[i] + step * arrays.y[i];
}

//// four_at_once
extern "C" __global__ void k(const float4 *x, float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 v = x[i];
        v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2;
        y[i] = v;
    }
}

//// half_numbers
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, __half *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hmul(x[i], __float2half(2.0f));
}

//// complex_numbers
extern "C" __global__ void k(const float2 *x, float2 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = make_float2(x[i].x * x[i].x - x[i].y * x[i].y, 2 * x[i].x * x[i].y);
}

//// batches
extern "C" __global__ void k(const float *x, float *y, int batches, int n) {
    for (int batch = blockIdx.y; batch < batches; batch += gridDim.y)
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            y[(size_t)batch * n + i] = x[(size_t)batch * n + i] + batch;
}

//// rows_with_gaps
extern "C" __global__ void k(const char *x, char *y, size_t pitch, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < columns) ((float *)(y + row * pitch))[column] = ((const float *)(x + row * pitch))[column] + 1;
}

//// softmax_of_rows
extern "C" __global__ void k(const float *x, float *y, int columns) {
    __shared__ float part[128];
    const float *row = x + (size_t)blockIdx.x * columns;
    float most = -1e30f, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 128) most = fmaxf(most, row[i]);
    part[threadIdx.x] = most;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + step]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += 128) sum += __expf(row[i] - most);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < columns; i += 128) y[(size_t)blockIdx.x * columns + i] = __expf(row[i] - most) / part[0];
}

//// layer_norm
extern "C" __global__ void k(const float *x, const float *gamma, const float *beta, float *y, int columns) {
    const float *row = x + (size_t)blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += 32) {
        sum += row[i];
        squares += row[i] * row[i];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, step);
        squares += __shfl_xor_sync(0xffffffff, squares, step);
    }
    float mean = sum / columns, scale = rsqrtf(squares / columns - mean * mean + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += 32)
        y[(size_t)blockIdx.x * columns + i] = (row[i] - mean) * scale * gamma[i] + beta[i];
}

//// random_numbers
extern "C" __global__ void k(float *y, unsigned seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned state = seed ^ (i * 747796405u + 2891336453u);
    for (int round = 0; round < 4; ++round) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    y[i] = state * 2.3283064e-10f;
}

//// bitonic_step
extern "C" __global__ void k(int *y, int distance, int size, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ distance;
    if (other <= i || other >= n) return;
    int a = y[i], b = y[other];
    bool up = (i & size) == 0;
    if ((a > b) == up) {
        y[i] = b;
        y[other] = a;
    }
}

//// newton
extern "C" __global__ void k(const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double value = x[i] + 1, guess = value;
    while (fabs(guess * guess - value) > 1e-9 * value) guess = 0.5 * (guess + value / guess);
    y[i] = guess;
}

//// sparse_product
extern "C" __global__ void k(const int *begin, const int *column, const float *value, const float *x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = begin[row]; i < begin[row + 1]; ++i) sum += value[i] * x[column[i]];
    y[row] = sum;
}

//// compaction
extern "C" __global__ void k(const float *x, float *y, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) y[atomicAdd(count, 1)] = x[i];
}

//// last_block
__device__ unsigned done;
extern "C" __global__ void k(const float *x, float *parts, float *y, int n) {
    __shared__ bool is_last;
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        sum = 0;
        for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
        *y = sum;
    }
}

//// wait_for_a_flag
extern "C" __global__ void k(volatile int *flag, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (*flag == 0) {}
    if (i < n) y[i] = x[i];
}
