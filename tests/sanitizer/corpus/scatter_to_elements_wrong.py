"""Two streams write to elements of x by lists of indices, and index 20 is in both lists."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(100)
first, second = xp.asarray([1, 5, 20]), xp.asarray([2, 6, 20])
tcuda.synchronize()

x[first] = 1  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    x[second] = 2  # second

tcuda.synchronize()
assert x[second].tolist() == [2, 2, 2]
