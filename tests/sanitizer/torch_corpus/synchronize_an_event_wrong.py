"""The program records an event, and does not wait for the event."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.fill_(3)  # first
written = side.record_event()
# missing: main.wait_stream(side)
y = x * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
