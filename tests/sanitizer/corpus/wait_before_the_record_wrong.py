"""The side stream waits for an event that is recorded later, which is no wait at all."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
written = tcuda.Event()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(5)  # first
side.wait_event(written)
written.record(main)
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
