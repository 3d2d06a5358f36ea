"""The allocator knows that the side stream uses x, so the memory of x stays in use until the side stream is done."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(3001, 2.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1
tcuda.memory.record_stream(x, side)
del x
z = xp.zeros(3001)

tcuda.synchronize()
assert float(y.sum()) == 9003
assert float(z.sum()) == 0
