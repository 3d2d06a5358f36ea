"""A kernel of CUDA C++, in which the threads of a block share memory."""

import tcuda
from tcuda import xp

BLOCK = 128

SUMS = xp.RawKernel(
    r"""
    extern "C" __global__ void sums(const float* x, float* out, int n) {
        __shared__ float part[128];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        part[threadIdx.x] = i < n ? x[i] : 0;
        __syncthreads();
        for (int half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) out[blockIdx.x] = part[0];
    }
    """,
    "sums",
)

x = xp.ones(1000, dtype=xp.float32)
blocks = -(-x.size // BLOCK)
out = xp.zeros(blocks, dtype=xp.float32)
SUMS((blocks,), (BLOCK,), (x, out, xp.int32(x.size)))
print(out.get().astype(int).tolist())

# A kernel for one element needs one line of C++. jiterator is torch's.
leaky = tcuda.jiterator._create_jit_fn("template <typename T> T leaky(T x) { return x > 0 ? x : x / 8; }")
print(leaky(xp.asarray([-8.0, 0.0, 3.0])).get())
