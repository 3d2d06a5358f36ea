"""The main stream adds up x while the side stream may still shuffle x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000)
tcuda.synchronize()

with tcuda.stream(side):
    xp.random.shuffle(x)  # first
# missing: main.wait_stream(side)
total = x.sum()  # second

tcuda.synchronize()
assert int(total) == 499_500
