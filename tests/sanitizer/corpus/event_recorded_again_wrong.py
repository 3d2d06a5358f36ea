"""The side stream waits for the first record of the event, and reads what was written before the second record."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x, z = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

written = tcuda.Event()
x.fill(3)
written.record(main)
side.wait_event(written)
z.fill(3)  # first
written.record(main)
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y = z * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
