"""Two streams write x, and the second stream waits for the first."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(1)
side.wait_stream(main)
with tcuda.stream(side):
    x.fill(2)

tcuda.synchronize()
assert float(x.sum()) == 2000
