"""The program waits for the event before the next operation."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.fill_(3)
written = side.record_event()
written.synchronize()
y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
