"""Two streams write two views of x that begin at different elements and overlap."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x[:600].fill(1)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    x[500:].fill(2)  # second

tcuda.synchronize()
assert float(x.sum()) == 1500
