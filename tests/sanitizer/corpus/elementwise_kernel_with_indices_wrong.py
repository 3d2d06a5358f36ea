"""Two kernels write to elements of x by an offset, and both have the same offset."""

import tcuda
from tcuda import xp

spread = xp.ElementwiseKernel("float64 value, int32 offset", "raw float64 x", "x[2 * i + offset] = value", "spread")
main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
offset = 0
tcuda.synchronize()

spread(1, 0, x, size=500)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    spread(2, offset, x, size=500)  # second

tcuda.synchronize()
assert bool((x[offset::2] == 2).all())
