"""The array is recorded on another stream than the stream that reads the array."""

import tcuda
from tcuda import xp

main, side, other = tcuda.current_stream(), tcuda.Stream(), tcuda.Stream()
x = xp.full(3009, 2.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1  # first
tcuda.memory.record_stream(x, other)
# missing: tcuda.memory.record_stream(x, side)
del x
z = xp.zeros(3009)  # second

tcuda.synchronize()
assert float(y.sum()) == 9027
assert float(z.sum()) == 0
