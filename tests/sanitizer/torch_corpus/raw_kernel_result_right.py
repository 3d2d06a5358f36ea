"""The main stream waits for the kernel on the side stream."""

import torch

code = r"""
extern "C" __global__ void square(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
"""
square = torch.cuda._compile_kernel(code, "square")
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x, y = torch.full((1000,), 3, dtype=torch.float32, device="cuda"), torch.zeros(1000, dtype=torch.float32, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    square((8, 1, 1), (128, 1, 1), (x, y, 1000))
main.wait_stream(side)
total = y.sum()

torch.cuda.synchronize()
assert float(total) == 9000
