"""Two streams read x at the same time. Nothing writes x, so no wait is needed between the streams."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.ones(1000)
side.wait_stream(main)

y = x + 1
with tcuda.stream(side):
    z = x + 2

tcuda.synchronize()
assert float(y.sum()) == 2000
assert float(z.sum()) == 3000
