"""The event of device 0 is recorded before the last write for device 1."""

import tcuda
from tcuda import xp

# needs two devices
main, reading = tcuda.current_stream(0), tcuda.Stream(device=1)
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(1)
written = main.record_event()
reading.wait_event(written)
with tcuda.stream(reading):
    y = xp.array(x)
main.wait_stream(reading)
x.fill(2)  # first
# missing: written = main.record_event()
# reported as: reading.wait_stream(main)
reading.wait_event(written)
with tcuda.stream(reading):
    z = xp.array(x)  # second
    reading.synchronize()
    totals = float(y.sum()), float(z.sum())

tcuda.synchronize()
assert totals == (1000, 2000)
