"""The main stream reads the result of a kernel on the side stream without a wait."""

import numpy

import tcuda
from tcuda import xp

code = r"""
extern "C" __global__ void square(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
"""
square = xp.RawKernel(code, "square")
main, side = tcuda.current_stream(), tcuda.Stream()
x, y = xp.full(1000, 3, dtype=xp.float32), xp.zeros(1000, dtype=xp.float32)
tcuda.synchronize()

with tcuda.stream(side):
    square((8,), (128,), (x, y, numpy.int32(1000)))  # first
# missing: main.wait_stream(side)
total = y.sum()  # second

tcuda.synchronize()
assert float(total) == 9000
