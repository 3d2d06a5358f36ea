"""The side stream reads the bytes of x after the write of x."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000, dtype="int32")
octets = x.view("uint8")
tcuda.synchronize()

x.fill(1)
side.wait_stream(main)
with tcuda.stream(side):
    total = octets.sum()

tcuda.synchronize()
assert int(total) == 1000
