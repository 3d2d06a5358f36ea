"""The program makes the side stream current without a block, and forgets the wait."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.zeros(1000)
tcuda.synchronize()

x.fill(3)  # first
# missing: side.wait_stream(main)
side.use()
y = x * 2  # second
main.use()

tcuda.synchronize()
assert float(y.sum()) == 6000
