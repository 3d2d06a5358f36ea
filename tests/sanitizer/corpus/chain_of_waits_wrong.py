"""The third stream waits for the second, which does not wait for the first."""

import tcuda
from tcuda import xp

first, second, third = tcuda.Stream(), tcuda.Stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(first):
    x.fill(3)  # first
third.wait_stream(second)
# missing: third.wait_stream(first)
with tcuda.stream(third):
    y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
