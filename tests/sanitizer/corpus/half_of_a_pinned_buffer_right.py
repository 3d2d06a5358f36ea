"""The program fills the second half of the page-locked buffer while the first half is copied."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
buffer = tcuda.memory.zeros_pinned((2, 4096))
x = xp.ones(4096)
tcuda.synchronize()

x.set(buffer[0], stream=side)
buffer[1] = 2

tcuda.synchronize()
assert float(x.sum()) == 0
