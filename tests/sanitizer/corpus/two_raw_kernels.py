"""A kernel on the side stream reads what a kernel on the main stream writes without a wait."""

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
x, y, z = xp.full(1000, 3, dtype=xp.float32), xp.zeros(1000, dtype=xp.float32), xp.zeros(1000, dtype=xp.float32)
n = numpy.int32(1000)
tcuda.synchronize()

square((8,), (128,), (x, y, n))  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    square((8,), (128,), (y, z, n))  # second

tcuda.synchronize()
assert float(z.sum()) == 81000
