"""The kernel writes one element more than the first half of x, and the side stream reads this element."""

import numpy

import tcuda
from tcuda import xp

code = r"""
extern "C" __global__ void fill(double* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 3;
}
"""
fill = xp.RawKernel(code, "fill")
main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
n = numpy.int32(501)
tcuda.synchronize()

fill((8,), (128,), (x, n))  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    total = x[500:].sum()  # second

tcuda.synchronize()
assert float(total) == 3
