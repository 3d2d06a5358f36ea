"""The memory of x goes to z, while the side stream may still write x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(3005)
side.wait_stream(main)
with tcuda.stream(side):
    x.fill(7)  # first
# missing: tcuda.memory.record_stream(x, side)
del x
z = xp.zeros(3005)  # second

tcuda.synchronize()
assert float(z.sum()) == 0
