"""The first half of x, and the first half of the reversed x, have no element in common."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
part = x[::-1][:500]
tcuda.synchronize()

x[:500] = 1
with tcuda.stream(side):
    part[...] = 2

tcuda.synchronize()
assert bool((part == 2).all())
