"""The collective does not wait for the stream that computes the array."""

import tcuda
from tcuda import xp

# needs two devices
side = tcuda.Stream(device=1)
arrays = []
for device in (0, 1):
    with tcuda.device(device):
        arrays.append(xp.zeros(1000))
        tcuda.synchronize()

with tcuda.stream(side):
    arrays[1].fill(2)  # first
# missing: tcuda.current_stream(1).wait_stream(side)
# reported as: tcuda.default_stream().wait_stream(side)
tcuda.nccl.all_reduce(arrays)  # second

for device in (0, 1):
    tcuda.synchronize(device)
assert float(arrays[0].sum()) == 2000
