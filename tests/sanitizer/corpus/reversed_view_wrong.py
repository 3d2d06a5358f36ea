"""The first half of x, and a bit more than half of the reversed x, have an element in common."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
part = x[::-1][:501]
tcuda.synchronize()

x[:500] = 1  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    part[...] = 2  # second

tcuda.synchronize()
assert bool((part == 2).all())
