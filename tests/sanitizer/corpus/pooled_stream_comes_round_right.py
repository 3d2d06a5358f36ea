"""A pool has 32 streams, so the 33rd stream is the first stream again, and the work is in order."""

import tcuda
from tcuda import xp

first = tcuda.Stream()
others = [tcuda.Stream() for _ in range(31)]
last = tcuda.Stream()
x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(first):
    x.fill(3)
with tcuda.stream(last):
    xp.multiply(x, 2, out=y)

tcuda.synchronize()
assert float(y.sum()) == 6000
