"""The main stream adds up x after the side stream has shuffled x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000)
tcuda.synchronize()

with tcuda.stream(side):
    xp.random.shuffle(x)
main.wait_stream(side)
total = x.sum()

tcuda.synchronize()
assert int(total) == 499_500
