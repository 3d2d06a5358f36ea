"""Two streams write the even and the odd elements of x, which are no common bytes."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1200)
part = x[1::2]
tcuda.synchronize()

x[::2] = 1
with tcuda.stream(side):
    part[...] = 2

tcuda.synchronize()
assert bool((part == 2).all())
