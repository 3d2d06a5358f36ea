"""The main stream records an event after the write, and the side stream does not wait for the event."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x += 3  # first
written = main.record_event()
# missing: side.wait_event(written)
# reported as: side.wait_stream(main)
with tcuda.stream(side):
    y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
