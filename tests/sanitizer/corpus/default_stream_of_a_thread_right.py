"""The per-thread default stream is a blocking stream, so the legacy default stream waits for its work."""

import tcuda
from tcuda import xp

x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(tcuda.ExternalStream(2)):  # cudaStreamPerThread
    x.fill(3)
xp.multiply(x, 2, out=y)

tcuda.synchronize()
assert float(y.sum()) == 6000
