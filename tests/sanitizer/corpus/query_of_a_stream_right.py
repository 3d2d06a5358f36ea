"""The program asks until the side stream has no work left. A successful query orders as a wait does."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)
while not side.query():
    pass
y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
