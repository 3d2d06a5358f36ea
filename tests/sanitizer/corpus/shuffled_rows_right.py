"""The main stream copies the beginning of x after the side stream has shuffled x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000)
tcuda.synchronize()

with tcuda.stream(side):
    xp.random.shuffle(x)
main.wait_stream(side)
begin = x[:100].copy()

tcuda.synchronize()
assert begin.tolist() != list(range(100))
