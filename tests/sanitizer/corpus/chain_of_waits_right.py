"""The third stream waits for the second, and the second for the first. So the third comes after the first."""

import tcuda
from tcuda import xp

first, second, third = tcuda.Stream(), tcuda.Stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(first):
    x.fill(3)
second.wait_stream(first)
third.wait_stream(second)
with tcuda.stream(third):
    y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
