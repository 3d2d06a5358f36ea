"""The side stream waits for an event that the main stream records after the write."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x += 3
written = main.record_event()
side.wait_event(written)
with tcuda.stream(side):
    y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
