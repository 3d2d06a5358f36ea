"""The side stream reads the bytes of x through a view of another dtype, without a wait."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000, dtype="int32")
octets = x.view("uint8")
tcuda.synchronize()

x.fill(1)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    total = octets.sum()  # second

tcuda.synchronize()
assert int(total) == 1000
