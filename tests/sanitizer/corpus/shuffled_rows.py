"""The main stream copies the beginning of x while the side stream may still shuffle x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000)
tcuda.synchronize()

with tcuda.stream(side):
    xp.random.shuffle(x)  # first
# missing: main.wait_stream(side)
begin = x[:100].copy()  # second

tcuda.synchronize()
assert begin.tolist() != list(range(100))
