"""The side stream waits for an event that is recorded already."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
written = torch.cuda.Event()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(5)
written.record(main)
side.wait_event(written)
with torch.cuda.stream(side):
    y = x + 1

torch.cuda.synchronize()
assert float(y.sum()) == 6000
