"""broadcast() waits for the current streams, and the current stream waits for the side stream."""

import tcuda
from tcuda import xp

# needs two devices
main, side = tcuda.current_stream(0), tcuda.Stream(device=0)
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)
main.wait_stream(side)
_, y = tcuda.comm.broadcast(x, [0, 1])

for device in (0, 1):
    tcuda.synchronize(device)
with tcuda.device(1):
    assert float(y.sum()) == 3000
