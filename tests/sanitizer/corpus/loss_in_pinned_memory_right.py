"""The program waits until the loss of the step is copied, and then looks at the loss."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
errors = xp.full(1000, 2.0, dtype="float32")
loss = tcuda.memory.zeros_pinned(1, "float32")
tcuda.synchronize()

with tcuda.stream(side):
    (errors**2).mean(keepdims=True).get(out=loss, blocking=False)
side.synchronize()
seen = float(loss[0])

tcuda.synchronize()
assert seen == 4
