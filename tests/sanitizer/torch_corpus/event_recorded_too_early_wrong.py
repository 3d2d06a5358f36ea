"""The event is recorded before the write, so a wait for the event does not cover the write."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

written = main.record_event()
x.fill_(3)  # first
side.wait_event(written)
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    y = x * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
