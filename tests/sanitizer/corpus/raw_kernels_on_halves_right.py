"""Two kernels on two streams write the two halves of an array."""

import numpy

import tcuda
from tcuda import xp

code = r"""
extern "C" __global__ void fill(double* x, int first, int end) {
    int i = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < end) x[i] = first;
}
"""
fill = xp.RawKernel(code, "fill")
main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
begin, middle, end = numpy.int32(0), numpy.int32(500), numpy.int32(1000)
tcuda.synchronize()

fill((4,), (128,), (x, begin, middle))
with tcuda.stream(side):
    fill((4,), (128,), (x, middle, end))

tcuda.synchronize()
assert float(x.sum()) == 250000
