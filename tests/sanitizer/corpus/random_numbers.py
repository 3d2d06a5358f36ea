"""The main stream reads random numbers that the side stream may not have drawn yet."""

import tcuda
from tcuda import xp

tcuda.manual_seed(1)
main, side = tcuda.current_stream(), tcuda.Stream()
with tcuda.stream(side):
    noise = xp.random.uniform(1, 2, 1000)  # first
# missing: main.wait_stream(side)
low = noise.min()  # second

tcuda.synchronize()
assert 1 <= float(low) <= 2
