"""The program waits for the copy to the page-locked array, and then reads the array."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(1000, 3.0)
host = tcuda.memory.empty_pinned(1000)
tcuda.synchronize()

x.get(stream=side, out=host, blocking=False)
side.synchronize()
total = host.sum()

tcuda.synchronize()
assert total == 3000
