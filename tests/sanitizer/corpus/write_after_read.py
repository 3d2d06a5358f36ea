"""The side stream changes x, and does not wait until the main stream has read x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.ones(1000)
tcuda.synchronize()

y = x + 1  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    x.fill(100)  # second

tcuda.synchronize()
assert float(y.sum()) == 2000
