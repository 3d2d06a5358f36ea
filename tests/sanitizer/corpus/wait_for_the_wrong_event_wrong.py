"""The side stream waits for the event of an earlier operation, not for the event of the write."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

x.fill(2)
filled = main.record_event()
xp.multiply(x, 3, out=y)  # first
multiplied = main.record_event()
side.wait_event(filled)
# missing: side.wait_stream(main)
with tcuda.stream(side):
    total = y.sum()  # second

tcuda.synchronize()
assert float(total) == 6000
