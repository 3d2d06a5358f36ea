"""The main stream reads the smallest element of x while the side stream may still sort x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000.0)[::-1].copy()
tcuda.synchronize()

with tcuda.stream(side):
    x.sort()  # first
# missing: main.wait_stream(side)
smallest = x[:10].copy()  # second

tcuda.synchronize()
assert smallest.tolist() == list(range(10))
