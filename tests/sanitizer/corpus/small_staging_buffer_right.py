"""The program fills the staging buffer with the next batch after the copy of the last batch."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
staging = tcuda.memory.empty_pinned((32, 10), "float32")
batch = xp.zeros((32, 10), dtype="float32")
tcuda.synchronize()

staging[...] = 1
batch.set(staging, stream=side)
side.synchronize()
staging[...] = 2

tcuda.synchronize()
assert float(batch.sum()) == 320
