"""The side stream waits for an event that is recorded later, which is no wait at all."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
written = torch.cuda.Event()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(5)  # first
side.wait_event(written)
written.record(main)
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
