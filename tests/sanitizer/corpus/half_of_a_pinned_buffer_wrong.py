"""The program fills the first half of the page-locked buffer while this half is copied."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
buffer = tcuda.memory.zeros_pinned((2, 4096))
x = xp.ones(4096)
tcuda.synchronize()

x.set(buffer[0], stream=side)  # first
# missing: side.synchronize()
buffer[0] = 2  # second

tcuda.synchronize()
assert float(x.sum()) == 0
