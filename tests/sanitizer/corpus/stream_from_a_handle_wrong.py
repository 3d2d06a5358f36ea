"""The handle is that of another stream, which does not wait for the first."""

import tcuda
from tcuda import xp

stream, other = tcuda.Stream(), tcuda.Stream()
same = tcuda.ExternalStream(other.cuda_stream)
x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(stream):
    x.fill(3)  # first
# missing: same.wait_stream(stream)
# reported as: other.wait_stream(stream)
with tcuda.stream(same):
    xp.multiply(x, 2, out=y)  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
