"""The kernel writes only the first half of x, and the side stream reads only the second half."""

import torch

code = r"""
extern "C" __global__ void fill(double* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 3;
}
"""
fill = torch.cuda._compile_kernel(code, "fill")
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, dtype=torch.float64, device="cuda")
n = 500
torch.cuda.synchronize()

fill((8, 1, 1), (128, 1, 1), (x, n))
with torch.cuda.stream(side):
    total = x[500:].sum()

torch.cuda.synchronize()
assert float(total) == 0
