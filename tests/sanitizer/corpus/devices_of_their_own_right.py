"""Two devices work at the same time, each on an array of its own."""

import tcuda
from tcuda import xp

# needs two devices
arrays = []
for device in (0, 1):
    with tcuda.device(device):
        arrays.append(xp.zeros(1000))
for _ in range(3):
    for device in (0, 1):
        with tcuda.device(device):
            arrays[device] += device + 1

for device in (0, 1):
    with tcuda.device(device):
        assert float(arrays[device].sum()) == 3000 * (device + 1)
