"""The program waits for the event before the next operation."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)
written = side.record_event()
written.synchronize()
y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
