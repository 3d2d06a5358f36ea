"""The main stream waits for the write of the side stream before the memory goes to another array."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(3005)
side.wait_stream(main)
with tcuda.stream(side):
    x.fill(7)
tcuda.memory.record_stream(x, side)
del x
z = xp.zeros(3005)

tcuda.synchronize()
assert float(z.sum()) == 0
