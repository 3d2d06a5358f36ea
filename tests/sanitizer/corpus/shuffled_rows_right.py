"""The main stream reads x after the side stream has shuffled x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.arange(1000)
tcuda.synchronize()

with tcuda.stream(side):
    xp.random.shuffle(x)
    order = x.copy()
main.wait_stream(side)
x.fill(0)

tcuda.synchronize()
assert int(order.sum()) == 499_500
