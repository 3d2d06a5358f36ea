"""The side stream copies x, and does not wait for the write of x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, copy = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

x.fill(3)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    xp.copyto(copy, x)  # second

tcuda.synchronize()
assert float(copy.sum()) == 3000
