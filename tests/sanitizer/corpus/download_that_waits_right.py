"""get() waits for its copy, so the program may change x afterwards on every stream."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
x = xp.full(1000, 3.0)
side.wait_stream(main)
with tcuda.stream(side):
    host = x.get()
x.fill(0)

tcuda.synchronize()
assert host.sum() == 3000
