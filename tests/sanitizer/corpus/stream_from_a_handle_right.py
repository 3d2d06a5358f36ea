"""Two objects with the same handle are the same stream."""

import tcuda
from tcuda import xp

stream, other = tcuda.Stream(), tcuda.Stream()
same = tcuda.ExternalStream(stream.cuda_stream)
x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(stream):
    x.fill(3)
with tcuda.stream(same):
    xp.multiply(x, 2, out=y)

tcuda.synchronize()
assert float(y.sum()) == 6000
