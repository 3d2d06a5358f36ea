"""The main stream waits for the side stream before the sum of its result."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1

main.wait_stream(side)
total = y.sum()

tcuda.synchronize()
assert float(total) == 500_500
