"""The program waits for another stream than the stream that wrote x."""

import tcuda
from tcuda import xp

main, side, other = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(side):
    x.fill(3)  # first
other.synchronize()
# missing: main.wait_stream(side)
y = x * 2  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
