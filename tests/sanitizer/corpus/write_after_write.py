"""Two streams write x, and no wait says which stream writes last."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(1)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    x.fill(2)  # second

tcuda.synchronize()
assert float(x.sum()) == 2000
