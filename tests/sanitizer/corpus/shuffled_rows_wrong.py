"""The main stream changes x while the side stream may still shuffle x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000)
tcuda.synchronize()

with tcuda.stream(side):
    xp.random.shuffle(x)
    order = x.copy()  # first
# missing: main.wait_stream(side)
x.fill(0)  # second

tcuda.synchronize()
assert int(order.sum()) == 499_500
