"""The side stream waits for an event that is recorded already."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
written = tcuda.Event()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(5)
written.record(main)
side.wait_event(written)
with tcuda.stream(side):
    y = x + 1

tcuda.synchronize()
assert float(y.sum()) == 6000
