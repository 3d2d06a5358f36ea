"""The program fills the staging buffer with the next batch while the last batch may still be copied."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
staging = tcuda.memory.empty_pinned((32, 10), "float32")
batch = xp.zeros((32, 10), dtype="float32")
tcuda.synchronize()

staging[...] = 1
batch.set(staging, stream=side)  # first
# missing: side.synchronize()
staging[...] = 2  # second

tcuda.synchronize()
assert float(batch.sum()) == 320
