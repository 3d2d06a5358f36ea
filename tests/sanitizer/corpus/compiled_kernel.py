"""The main stream changes x while the kernel may still read x."""

import tcuda
from tcuda import xp

code = r"""
__global__ void twice(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""
twice = tcuda._compile_kernel(code, "twice")
main, side = tcuda.current_stream(), tcuda.Stream()
x, y = xp.ones(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    twice((8, 1, 1), (128, 1, 1), (x, y, 1000))  # first
# missing: main.wait_stream(side)
x.fill(5)  # second

tcuda.synchronize()
assert float(y.sum()) == 2000
