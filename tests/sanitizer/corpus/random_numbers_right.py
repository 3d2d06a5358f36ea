"""The main stream waits until the side stream has drawn the numbers."""

import tcuda
from tcuda import xp

tcuda.manual_seed(1)
main, side = tcuda.current_stream(), tcuda.Stream()
with tcuda.stream(side):
    noise = xp.random.uniform(1, 2, 1000)
main.wait_stream(side)
low = noise.min()

tcuda.synchronize()
assert 1 <= float(low) <= 2
