"""The array is recorded on the stream that reads the array."""

import tcuda
from tcuda import xp

main, side, other = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.full(3009, 2.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1
tcuda.memory.record_stream(x, side)
del x
z = xp.zeros(3009)

tcuda.synchronize()
assert float(y.sum()) == 9027
assert float(z.sum()) == 0
