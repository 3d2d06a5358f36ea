"""Two streams write every second and every third element of x, and share every sixth."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1200)
part = x[::3]
tcuda.synchronize()

x[::2] = 1  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    part[...] = 2  # second

tcuda.synchronize()
assert bool((part == 2).all())
