"""A stream of device 1 waits for an event of device 0, and then reads the copy."""

import tcuda
from tcuda import xp

# needs two devices
copying, reading = tcuda.Stream(device=1), tcuda.Stream(device=1)
x = xp.full(1000, 3.0)
with tcuda.device(1):
    y = xp.zeros(1000)
for device in (0, 1):
    tcuda.synchronize(device)

with tcuda.stream(copying):
    tcuda.comm.broadcast(x, out=[y])
copied = tcuda.current_stream(0).record_event()
reading.wait_event(copied)
with tcuda.stream(reading):
    total = y.sum()

for device in (1, 0):
    tcuda.synchronize(device)
assert float(total) == 3000
