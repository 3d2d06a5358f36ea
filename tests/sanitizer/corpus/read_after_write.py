"""The side stream reads x, and does not wait for the write of x on the main stream."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
