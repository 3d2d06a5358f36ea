"""The program waits, and then makes the side stream current without a block."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)
side.wait_stream(main)
side.use()
y = x * 2
main.use()

tcuda.synchronize()
assert float(y.sum()) == 6000
