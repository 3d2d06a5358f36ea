"""Two kernels on two streams write the even and the odd elements of an array."""

import numpy

import tcuda
from tcuda import xp

code = r"""
extern "C" __global__ void fill(double* x, int first, int n, double value) {
    int i = first + 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) x[i] = value;
}
"""
fill = xp.RawKernel(code, "fill")
main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
even, odd, n = numpy.int32(0), numpy.int32(1), numpy.int32(1000)
tcuda.synchronize()

fill((4,), (128,), (x, even, n, 1.0))
with tcuda.stream(side):
    fill((4,), (128,), (x, odd, n, 2.0))

tcuda.synchronize()
assert float(x.sum()) == 1500
