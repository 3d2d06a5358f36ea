"""The program looks at the loss of the step while the copy of the loss may still run."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
errors = xp.full(1000, 2.0, dtype="float32")
loss = tcuda.memory.zeros_pinned(1, "float32")
tcuda.synchronize()

with tcuda.stream(side):
    (errors**2).mean(keepdims=True).get(out=loss, blocking=False)  # first
# missing: side.synchronize()
seen = float(loss[0])  # second

tcuda.synchronize()
assert seen == 4
