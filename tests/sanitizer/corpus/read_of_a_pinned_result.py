"""The program reads the page-locked array while the copy to the array may still run."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(1000, 3.0)
host = tcuda.memory.empty_pinned(1000)
tcuda.synchronize()

x.get(stream=side, out=host, blocking=False)  # first
# missing: side.synchronize()
total = host.sum()  # second

tcuda.synchronize()
assert total == 3000
