"""Two streams write to elements of x by lists of indices, which have no index in common."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(100)
first, second = xp.asarray([1, 5, 20]), xp.asarray([2, 6, 21])
tcuda.synchronize()

x[first] = 1
with tcuda.stream(side):
    x[second] = 2

tcuda.synchronize()
assert x[second].tolist() == [2, 2, 2]
