"""The program waits for the stream that wrote x."""

import tcuda
from tcuda import xp

main, side, other = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)
side.synchronize()
y = x * 2

tcuda.synchronize()
assert float(y.sum()) == 6000
