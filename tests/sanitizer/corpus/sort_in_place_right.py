"""The main stream reads x after the side stream has sorted x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000.0)[::-1].copy()
tcuda.synchronize()

with tcuda.stream(side):
    x.sort()
main.wait_stream(side)
smallest = x[:10].copy()

tcuda.synchronize()
assert smallest.tolist() == list(range(10))
