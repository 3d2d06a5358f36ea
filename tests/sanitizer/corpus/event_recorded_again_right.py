"""The side stream waits for the first record of the event, and reads only what was written before."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, z = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

written = tcuda.Event()
x.fill(3)
written.record(main)
side.wait_event(written)
z.fill(3)
written.record(main)
with tcuda.stream(side):
    y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
