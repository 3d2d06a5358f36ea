"""The current stream of device 0 does not wait for the stream of the collective."""

import tcuda
from tcuda import xp

# needs two devices
streams = [tcuda.Stream(device=0), tcuda.Stream(device=1)]
arrays = []
for device in (0, 1):
    with tcuda.device(device):
        arrays.append(xp.full(1000, device + 1.0))
        tcuda.synchronize()

tcuda.nccl.all_reduce(arrays, streams=streams)  # first
# missing: tcuda.current_stream(0).wait_stream(streams[0])
# reported as: tcuda.default_stream().wait_stream(streams[0])
doubled = arrays[0] * 2  # second

for device in (0, 1):
    tcuda.synchronize(device)
assert float(doubled.sum()) == 6000
