"""The side stream waits until the main stream has filled the array with zeros."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
side.wait_stream(main)
with tcuda.stream(side):
    x += 5

tcuda.synchronize()
assert float(x.sum()) == 5000
