"""A stream of device 1 reads the copy, and does not wait for the copy."""

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
    tcuda.comm.broadcast(x, out=[y])  # first
copied = tcuda.current_stream(0).record_event()
# missing: reading.wait_event(copied)
# reported as: reading.wait_stream(tcuda.default_stream(0))
with tcuda.stream(reading):
    total = y.sum()  # second

for device in (1, 0):
    tcuda.synchronize(device)
assert float(total) == 3000
