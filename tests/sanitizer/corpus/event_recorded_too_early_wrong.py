"""The event is recorded before the write, so a wait for the event does not cover the write."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

written = main.record_event()
x.fill(3)  # first
side.wait_event(written)
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
