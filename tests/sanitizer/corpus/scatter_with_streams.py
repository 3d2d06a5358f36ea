"""The current stream of device 1 does not wait for the stream that receives the part."""

import tcuda
from tcuda import xp

# needs two devices
sending, loading = tcuda.Stream(device=0), tcuda.Stream(device=1)
rows = xp.arange(8.0)
tcuda.synchronize()

with tcuda.stream(sending):
    _, part = tcuda.comm.scatter(rows, [0, 1], streams=[None, loading])  # first
# missing: tcuda.current_stream(1).wait_stream(loading)
# reported as: tcuda.default_stream().wait_stream(sending)
with tcuda.device(1):
    doubled = part * 2  # second

for device in (1, 0):
    tcuda.synchronize(device)
with tcuda.device(1):
    assert doubled.tolist() == [8, 10, 12, 14]
