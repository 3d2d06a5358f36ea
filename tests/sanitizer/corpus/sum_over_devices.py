"""A side stream computes one of the terms, and reduce_add() does not wait for this stream."""

import tcuda
from tcuda import xp

# needs two devices
main, side = tcuda.current_stream(1), tcuda.Stream(device=1)
terms = []
for device in (0, 1):
    with tcuda.device(device):
        terms.append(xp.zeros(1000))
        tcuda.synchronize()

terms[0].fill(1)
with tcuda.stream(side):
    terms[1].fill(2)  # first
# missing: main.wait_stream(side)
# reported as: tcuda.default_stream(0).wait_stream(side)
total = tcuda.comm.reduce_add(terms, destination=0)  # second

for device in (0, 1):
    tcuda.synchronize(device)
assert float(total.sum()) == 3000
