"""The side stream adds to an array that the main stream may still fill with zeros."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    x += 5  # second

tcuda.synchronize()
assert float(x.sum()) == 5000
