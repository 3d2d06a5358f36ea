"""The event is recorded after the write, so a wait for the event covers the write."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)
written = main.record_event()
side.wait_event(written)
with torch.cuda.stream(side):
    y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
