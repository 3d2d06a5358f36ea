"""The first device overwrites the copy on the other device while the copy may still be read."""

import tcuda
from tcuda import xp

# needs two devices
main, reading = tcuda.current_stream(0), tcuda.Stream(device=1)
x = xp.ones(1000)
with tcuda.device(1):
    y = xp.zeros(1000)
for device in (0, 1):
    tcuda.synchronize(device)

tcuda.comm.broadcast(x, out=[y])
reading.wait_stream(tcuda.current_stream(1))
reading.wait_stream(main)
with tcuda.device(1), tcuda.stream(reading):
    total = y.sum()  # first
# missing: main.wait_stream(reading)
x.fill(5)
tcuda.comm.broadcast(x, out=[y])  # second

for device in (1, 0):
    tcuda.synchronize(device)
assert float(total) == 1000
