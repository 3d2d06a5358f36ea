"""broadcast() waits for the current streams, and not for the side stream that writes x."""

import tcuda
from tcuda import xp

# needs two devices
main, side = tcuda.current_stream(0), tcuda.Stream(device=0)
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)  # first
# missing: main.wait_stream(side)
_, y = tcuda.comm.broadcast(x, [0, 1])  # second

for device in (0, 1):
    tcuda.synchronize(device)
with tcuda.device(1):
    assert float(y.sum()) == 3000
