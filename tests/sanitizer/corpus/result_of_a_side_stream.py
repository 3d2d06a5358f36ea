"""The main stream adds up the result of the side stream without a wait."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1  # first

# missing: main.wait_stream(side)
total = y.sum()  # second

tcuda.synchronize()
assert float(total) == 500_500
