"""The fused function on the side stream does not wait for the write of x."""

import tcuda
from tcuda import xp


@xp.fuse()
def polynomial(x):
    return x * x + 2 * x + 1


main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    y = polynomial(x)  # second

tcuda.synchronize()
assert float(y.sum()) == 16_000
