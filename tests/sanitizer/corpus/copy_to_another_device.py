"""The copy to the other device does not wait for the write of x."""

import tcuda
from tcuda import xp

# needs two devices
writing, copying = tcuda.Stream(device=0), tcuda.Stream(device=1)
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(writing):
    x.fill(3)  # first
# missing: copying.wait_stream(writing)
with tcuda.stream(copying):
    y = xp.array(x)  # second
    copying.synchronize()
    total = float(y.sum())

tcuda.synchronize()
assert total == 3000
