"""The program records an event, and does not wait for the event."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)  # first
written = side.record_event()
# missing: main.wait_stream(side)
y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
