"""An array in a pool of the program dies while another stream may still read the array."""

import tcuda
from tcuda import xp

main, side, pool = tcuda.current_stream(), tcuda.Stream(), tcuda.MemPool()
with tcuda.use_mem_pool(pool):
    x = xp.full(3015, 2.0)
side.wait_stream(main)
with tcuda.stream(side):
    y = x + 1  # first
# missing: tcuda.memory.record_stream(x, side)
del x
with tcuda.use_mem_pool(pool):
    z = xp.zeros(3015)  # second

tcuda.synchronize()
assert float(y.sum()) == 9045
assert float(z.sum()) == 0
del z
