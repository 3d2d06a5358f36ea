"""The main stream records an event after the write, and the side stream does not wait for the event."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x += 3  # first
written = main.record_event()
# missing: side.wait_event(written)
with torch.cuda.stream(side):
    y = x * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
