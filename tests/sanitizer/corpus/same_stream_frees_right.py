"""One stream uses and frees the memory, so the next array of this stream may have the memory at once."""

import tcuda
from tcuda import xp

side = tcuda.Stream()
with tcuda.stream(side):
    for number in range(5):
        x = xp.full(3019, float(number))
        y = x + 1
        del x

tcuda.synchronize()
assert float(y.sum()) == 15_095
