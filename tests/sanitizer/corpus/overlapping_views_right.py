"""Two streams write two halves of x, which have no element in common."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x[:500].fill(1)
with tcuda.stream(side):
    x[500:].fill(2)

tcuda.synchronize()
assert float(x.sum()) == 1500
