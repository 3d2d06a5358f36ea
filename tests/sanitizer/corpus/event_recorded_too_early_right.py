"""The event is recorded after the write, so a wait for the event covers the write."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)
written = main.record_event()
side.wait_event(written)
with tcuda.stream(side):
    y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
