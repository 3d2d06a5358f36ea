"""The main stream changes x while the kernel may still read x."""

import torch

code = r"""
__global__ void twice(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""
twice = torch.cuda._compile_kernel(code, "twice")
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, y = torch.ones(1000, dtype=torch.float64, device="cuda"), torch.zeros(1000, dtype=torch.float64, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    twice((8, 1, 1), (128, 1, 1), (x, y, 1000))  # first
# missing: main.wait_stream(side)
x.fill_(5)  # second

torch.cuda.synchronize()
assert float(y.sum()) == 2000
