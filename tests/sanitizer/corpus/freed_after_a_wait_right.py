"""The main stream waits for the side stream before x dies, so the memory of x may go to z."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(3011, 2.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1
main.wait_stream(side)
del x
z = xp.zeros(3011)

tcuda.synchronize()
assert float(y.sum()) == 9033
assert float(z.sum()) == 0
