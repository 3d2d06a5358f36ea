"""The memory of x is free at once, and goes to z while the side stream may still read x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(3001, 2.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1  # first
# missing: tcuda.memory.record_stream(x, side)
del x
z = xp.zeros(3001)  # second

tcuda.synchronize()
assert float(y.sum()) == 9003
assert float(z.sum()) == 0
