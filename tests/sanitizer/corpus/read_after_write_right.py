"""The side stream waits for the write of x, and then reads x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)
side.wait_stream(main)
with tcuda.stream(side):
    y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
