"""The side stream waits for the event of the last write."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

x.fill(2)
filled = main.record_event()
xp.multiply(x, 3, out=y)
multiplied = main.record_event()
side.wait_event(multiplied)
with tcuda.stream(side):
    total = y.sum()

tcuda.synchronize()
assert float(total) == 6000
