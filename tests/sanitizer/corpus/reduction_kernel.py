"""The reduction on the side stream does not wait for the write of x."""

import tcuda
from tcuda import xp

length = xp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length")
main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(10_000)
tcuda.synchronize()

x.fill(2)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y = length(x)  # second

tcuda.synchronize()
assert float(y) == 200
