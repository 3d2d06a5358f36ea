"""The 32nd stream is another stream than the first, so the work has no order."""

import tcuda
from tcuda import xp

first = tcuda.Stream()
others = [tcuda.Stream() for _ in range(30)]
last = tcuda.Stream()
x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(first):
    x.fill(3)  # first
# missing: last.wait_stream(first)
with tcuda.stream(last):
    xp.multiply(x, 2, out=y)  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
